//! What a sample was spent on. The innermost frame that a rule knows decides, so that time in a helper counts
//! for who called it; copying and allocating are a class of their own, whoever asked for it.

use super::script::{Frame, KERNEL};

/// What processor time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Class {
    /// The cryptographic library: ciphers, signatures, hashes, what it needs to find and set up one.
    Crypto,
    /// Records, handshakes, sessions, tickets.
    Tls,
    /// System calls, interrupts, the network stack.
    Kernel,
    /// The program itself, and the runtime that it waits in.
    Proxy,
    /// Allocation, copying, clearing, collecting garbage.
    Memory,
    /// What no rule knows.
    Other,
}

impl Class {
    /// As a record has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crypto => "crypto",
            Self::Tls => "tls",
            Self::Kernel => "kernel",
            Self::Proxy => "proxy",
            Self::Memory => "memory",
            Self::Other => "other",
        }
    }
}

/// What a rule says of a frame.
#[derive(Clone, Copy)]
enum Verdict {
    Is(Class),
    /// It works for whoever called it.
    AskCaller,
}

/// Beginning of an object's name, beginnings of a symbol's name (without leading `<`, `&` and `_`), what they
/// mean. The first that fits counts; `""` fits everything.
type Rule = (&'static str, &'static [&'static str], Verdict);

const CRYPTO: Verdict = Verdict::Is(Class::Crypto);
const TLS: Verdict = Verdict::Is(Class::Tls);
const PROXY: Verdict = Verdict::Is(Class::Proxy);
const MEMORY: Verdict = Verdict::Is(Class::Memory);
const ASK: Verdict = Verdict::AskCaller;

/// How the kernel's function of a system call begins, by architecture.
const ENTRIES: [&str; 2] = ["__x64_sys_", "__arm64_sys_"];

const RULES: [Rule; 24] = [
    (KERNEL, &[""], Verdict::Is(Class::Kernel)),
    ("[vdso]", &[""], Verdict::Is(Class::Kernel)),
    // Libraries that are one thing.
    ("libcrypto", &[""], CRYPTO),
    ("libnettle", &[""], CRYPTO),
    ("libhogweed", &[""], CRYPTO),
    ("libgmp", &[""], CRYPTO),
    ("libssl", &[""], TLS),
    ("libgnutls", &[""], TLS),
    ("libjemalloc", &[""], MEMORY),
    ("libtcmalloc", &[""], MEMORY),
    ("ngx_", &[""], PROXY),
    ("libev.", &[""], PROXY),
    ("libwrap", &[""], PROXY),
    // The C library: what it does with memory is known by name, everything else it does for somebody.
    (
        "",
        &[
            "malloc",
            "calloc",
            "realloc",
            "libc_calloc",
            "libc_malloc",
            "int_malloc",
            "int_free",
            "int_realloc",
        ],
        MEMORY,
    ),
    (
        "",
        &["free", "cfree", "unlink_chunk", "sysmalloc", "systrim", "tcache", "arena_get", "mem", "mi_"],
        MEMORY,
    ),
    ("libc.so", &[""], ASK),
    ("ld-linux", &[""], ASK),
    ("libpthread", &[""], ASK),
    // Libraries that are linked into the program: ours, and those of Rust and Go.
    (
        "",
        &[
            "aws_lc",
            "ring::",
            "ring_core",
            "sha2::",
            "aes",
            "ecp_nistz256",
            "Lp256_",
            "Lbignum",
            "rsaz",
            "bn_",
        ],
        CRYPTO,
    ),
    (
        "",
        &["courser_tls::mac", "courser_tls::key_schedule", "courser_tls::random", "GFMUL", "bignum_"],
        CRYPTO,
    ),
    ("", &["rustls::", "courser_tls", "courser_session", "courser_wire", "tokio_rustls", "crypto/tls."], TLS),
    ("", &["crypto/", "vendor/golang.org/x/crypto", "golang.org/x/crypto", "math/big."], CRYPTO),
    (
        "",
        &["runtime.malloc", "runtime.gc", "runtime.scan", "runtime.mark", "runtime.mem", "runtime.(*m"],
        MEMORY,
    ),
    ("", &["core::", "alloc::", "hashbrown::", "T as ", "mut ", "std::", "runtime."], ASK),
];

/// What a stack, innermost frame first, was spent on. A function that no rule knows belongs to its object:
/// whoever called it may know better, as long as that is in the same one.
pub(super) fn of(stack: &[Frame]) -> Class {
    let mut nameless: Option<&str> = None;
    for frame in stack {
        if nameless.is_some_and(|object| object != frame.object) {
            break;
        }
        match verdict(frame) {
            Some(Verdict::Is(class)) => return class,
            Some(Verdict::AskCaller) => {}
            None if is_rust(&frame.symbol) => return Class::Proxy,
            None => nameless = Some(&frame.object),
        }
    }
    if stack.iter().any(|frame| is_program(&frame.object)) { Class::Proxy } else { Class::Other }
}

/// The system call that a stack is in, without `sys_`. The kernel has a function for each, named after the architecture
/// and the call; an interrupt's frames are further in than the call that it came in, and count for it.
pub(super) fn system_call(stack: &[Frame]) -> Option<&str> {
    let within = stack.iter().take_while(|frame| frame.object == KERNEL);
    within.filter_map(|frame| ENTRIES.iter().find_map(|entry| frame.symbol.strip_prefix(entry))).last()
}

fn verdict(frame: &Frame) -> Option<Verdict> {
    let symbol = frame.symbol.trim_start_matches(['<', '&', '_']);
    let fits = |(object, symbols, _): &&Rule| {
        frame.object.starts_with(object) && symbols.iter().any(|start| symbol.starts_with(start))
    };
    RULES.iter().find(fits).map(|(_, _, verdict)| *verdict)
}

/// Of a crate that no rule knows: the program's own, or what it is built from.
fn is_rust(symbol: &str) -> bool {
    symbol.contains("::")
}

/// Neither a shared library nor one of the kernel's mappings.
fn is_program(object: &str) -> bool {
    !object.contains(".so") && !object.starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(frames: &[(&str, &str)]) -> Class {
        let frame =
            |(symbol, object): &(&str, &str)| Frame { symbol: (*symbol).into(), object: (*object).into() };
        of(&frames.iter().map(frame).collect::<Vec<_>>())
    }

    #[test]
    fn a_helper_works_for_its_caller() {
        let lock = ("pthread_rwlock_unlock@@GLIBC_2.34", "libc.so.6");
        assert_eq!(class(&[lock, ("CRYPTO_THREAD_unlock", "libcrypto.so.3")]), Class::Crypto);
        assert_eq!(class(&[lock, ("[haproxy]", "haproxy"), ("main", "haproxy")]), Class::Proxy);
        assert_eq!(class(&[lock]), Class::Other);
        let drop = ("core::ptr::drop_in_place<courser_proxy::turn::Turn>", "courser");
        assert_eq!(class(&[drop, ("<rustls::msgs::Hello as Drop>::drop", "courser")]), Class::Tls);
    }

    #[test]
    fn memory_is_memory_whoever_asks() {
        let caller = ("CRYPTO_zalloc", "libcrypto.so.3");
        for name in ["_int_malloc", "cfree@GLIBC_2.2.5", "__memmove_avx512_unaligned_erms", "__memset_evex"] {
            assert_eq!(class(&[(name, "libc.so.6"), caller]), Class::Memory, "{name}");
        }
        assert_eq!(class(&[("mi_theap_malloc_aligned", "courser")]), Class::Memory);
        assert_eq!(class(&[("__strcmp_evex", "libc.so.6"), caller]), Class::Crypto);
    }

    #[test]
    fn a_program_that_calls_back_from_a_library_is_still_the_program() {
        let stack =
            [("ssl_sock_infocbk", "haproxy"), ("SSL_do_handshake", "libssl.so.3"), ("main", "haproxy")];
        assert_eq!(class(&stack), Class::Proxy);
    }

    #[test]
    fn functions_of_a_linked_library_are_known_by_who_calls_them() {
        let signing = ("aws_lc_0_47_0_EVP_DigestSignFinal", "courser");
        assert_eq!(class(&[("pkey_rsa_sign", "courser"), signing]), Class::Crypto);
        assert_eq!(class(&[("courser_proxy::relay::copy", "courser"), signing]), Class::Proxy);
        assert_eq!(class(&[("courser_tls::mac::Key::sign", "courser")]), Class::Crypto);
        assert_eq!(class(&[("crypto/tls.(*Conn).Handshake", "caddy")]), Class::Tls);
        assert_eq!(class(&[("crypto/internal/fips140/bigmod.addMulVVW2048", "caddy")]), Class::Crypto);
    }

    #[test]
    fn the_kernel_s_time_is_that_of_a_system_call() {
        let frame =
            |(symbol, object): &(&str, &str)| Frame { symbol: (*symbol).into(), object: (*object).into() };
        let stack = |frames: &[(&str, &str)]| frames.iter().map(frame).collect::<Vec<_>>();
        let sending = [("tcp_ack", KERNEL), ("__x64_sys_sendto", KERNEL), ("do_syscall_64", KERNEL)];
        let from_a_program = stack(&[sending.as_slice(), &[("send", "libc.so.6")]].concat());
        assert_eq!(system_call(&from_a_program), Some("sendto"));
        assert_eq!(system_call(&stack(&[("asm_sysvec_apic_timer_interrupt", KERNEL)])), None);
        assert_eq!(system_call(&stack(&[("__x64_sys_of_ours", "courser")])), None);
    }

    #[test]
    fn an_empty_stack_is_nothing_known() {
        assert_eq!(class(&[]), Class::Other);
        assert_eq!(class(&[("lua_pcall", "liblua5.4.so.0")]), Class::Other);
    }
}
