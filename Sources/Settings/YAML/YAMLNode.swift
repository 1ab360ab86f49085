// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A value of a YAML document and where it stands.
struct YAMLNode: Sendable, Equatable {
    /// A key of a mapping and its value.
    struct Entry: Sendable, Equatable {
        var key: String
        var keyMark: Mark
        var value: YAMLNode
    }

    enum Content: Sendable, Equatable {
        /// `isFlow` where it is written with braces.
        case mapping([Entry], isFlow: Bool)
        /// `isPlain` where it is written without quotes, so that it may be a number or `null`.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
    }

    var content: Content
    var mark: Mark

    /// Whether this is what `null`, `~` and nothing at all mean.
    var isNull: Bool {
        if case .scalar(let text, isPlain: true) = content {
            ["", "~", "null", "Null", "NULL"].contains(text)
        } else {
            false
        }
    }

    /// What it is, for messages.
    var kind: String {
        switch content {
        case .mapping: "a mapping"
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        }
    }
}

/// A key that stands in its mapping a second time.
struct DuplicateKey: Sendable, Equatable {
    var keyPath: String
    var mark: Mark
    /// Where it stands first.
    var first: Mark
}

/// Why a text is no YAML that we read.
struct YAMLError: Error, Sendable, Equatable {
    /// What is wrong; libyaml's own words where it found the fault.
    var message: String
    var mark: Mark
}
