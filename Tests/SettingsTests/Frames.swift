// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading

/// The errors alone, for a value that is warned of as well.
func errors(_ yaml: String) -> [String] {
    problems(yaml).filter { !$0.contains(": warning: ") }
}

/// The problems of a text as lines, its file called `f`.
func problems(_ yaml: String, environment: [String: String] = [:]) -> [String] {
    Settings.parse(Array(yaml.utf8), file: "f", environment: environment).problems.map(\.description)
}

/// The settings of a text, where it has no errors.
func parsed(_ yaml: String, environment: [String: String] = [:]) -> Settings? {
    Settings.parse(Array(yaml.utf8), file: "f", environment: environment).settings
}

/// A listener and an upstream `u` with a MobileFirst server, in three lines; `upstream` stands within its braces.
func frame(upstream: String = "", listener: String = "", _ rest: String = "") -> String {
    """
    listeners: [{ address: "127.0.0.1:8080", upstream: u\(listener.isEmpty ? "" : ", \(listener)") }]
    upstreams:
      u: { url: "https://u.example/", mobilefirst: { application: a }\(upstream.isEmpty ? "" : ", \(upstream)") }
    \(rest)
    """
}

/// A frame with one challenge in line 5, whose keys stand within its braces.
func challenge(_ keys: String, upstream: String = "") -> String {
    frame(upstream: upstream, "challenges:\n  - { \(keys) }")
}
