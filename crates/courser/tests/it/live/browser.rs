//! Chromium over its DevTools protocol, by a pipe: what it shows, and everything that it has to say about it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use courser_testkit::{Folder, PATIENCE, require};
use serde_json::{Value, json};

pub(super) struct Browser {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    /// What it has said without a question.
    events: Vec<Value>,
    _profile: Folder,
}

impl Browser {
    /// With an empty page, and no network but this machine. `None`, after saying so, where it is not installed.
    pub(super) fn start() -> Option<Self> {
        let (chromium, profile) = (require("chromium")?, Folder::new());
        // It reads and writes descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2"]).arg(chromium);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.args(["--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe"]);
        command.arg("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1");
        command.arg(format!("--user-data-dir={}", profile.join("profile").display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("sh is there");
        let (requests, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (number, session, events) = (0, None, Vec::new());
        let mut browser = Self { child, requests, answers, number, session, events, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut request = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = session.clone().into();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut message = Vec::new();
            self.answers.read_until(0, &mut message).unwrap();
            message.pop();
            let message: Value = serde_json::from_slice(&message).expect("the browser lives");
            if message["id"] == self.number {
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Sets the width and the colour scheme, `light` or `dark`.
    pub(super) fn resize(&mut self, width: u32, scheme: &str) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &scheme);
    }

    pub(super) fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// The value of a script.
    pub(super) fn value(&mut self, script: &str) -> Value {
        let answer = self.call("Runtime.evaluate", &json!({ "expression": script, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until a script is true; where the page is not there yet it fails, and is not.
    #[track_caller]
    pub(super) fn wait(&mut self, script: &str) {
        let end = Instant::now() + 2 * PATIENCE;
        let tolerant = format!("(() => {{ try {{ return {script} }} catch {{ return false }} }})()");
        while self.value(&tolerant) != true {
            let text = self.value("document.body.innerText");
            assert!(Instant::now() < end, "not {script} in {}", text.as_str().unwrap_or_default());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What stands in its console, with failed requests, violations of the page's policy and exceptions.
    pub(super) fn console(&self) -> Vec<&Value> {
        let is_said = |event: &&Value| {
            let method = event["method"].as_str().unwrap_or_default();
            matches!(method, "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded")
        };
        self.events.iter().filter(is_said).collect()
    }

    /// Every address that it has asked for.
    pub(super) fn requested(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
