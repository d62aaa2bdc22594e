//! Text that someone wrote before anything was measured. A figure in it is not of the record, and so no page shows it.

/// Words that state a figure without digits.
const WORDS: [&str; 23] = [
    "twice",
    "double",
    "doubles",
    "doubled",
    "thrice",
    "half",
    "third",
    "quarter",
    "tenth",
    "fiftieth",
    "hundredth",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "twelve",
    "twenty",
    "fifty",
    "hundred",
];

/// The paragraphs that state no figure. Names with digits are none: `TLS 1.3`, `RSA-2048`, `P-256`.
pub fn without_figures(text: &str) -> Vec<&str> {
    text.split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty() && !states_a_figure(paragraph))
        .collect()
}

fn states_a_figure(text: &str) -> bool {
    let trimmed = |word: &'_ str| word.trim_matches(|char: char| !char.is_alphanumeric()).to_owned();
    let words: Vec<String> = text.split_whitespace().map(trimmed).collect();
    let names = ["TLS", "TLSv", "SSL", "SSLv", "HTTP", "PROXY"];
    words.iter().enumerate().any(|(index, word)| {
        let follows_a_name = index > 0 && names.contains(&words[index - 1].as_str());
        let begins_with_digit = word.starts_with(|char: char| char.is_ascii_digit());
        (begins_with_digit && !follows_a_name && !is_after_versions(&words[..index], word))
            || WORDS.contains(&word.to_lowercase().as_str())
    })
}

/// `1.3` in `TLS 1.2 and 1.3`.
fn is_after_versions(before: &[String], word: &str) -> bool {
    matches!(before, [.., name, _, and] if and == "and" && name == "TLS") && word.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_with_a_figure_is_left_out_and_one_with_names_is_not() {
        let text = "The factor was seven.\n\nWith RSA-2048 and TLS 1.3 over P-256 it is the key.\n\nIt took 14.6 ms.";
        assert_eq!(without_figures(text), ["With RSA-2048 and TLS 1.3 over P-256 it is the key."]);
        assert!(without_figures("A signature costs a tenth of it.").is_empty());
        assert_eq!(without_figures("Clients of TLS 1.2 and 1.3 alike.").len(), 1);
    }
}
