// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A value of a YAML document and where it stands.
package struct YAMLNode: Sendable, Equatable {
    /// A key of a mapping and its value.
    package struct Entry: Sendable, Equatable {
        /// The key.
        package var key: String
        /// The place of the key.
        package var keyMark: Mark
        /// The value.
        package var value: YAMLNode

        /// An entry.
        package init(key: String, keyMark: Mark, value: YAMLNode) {
            self.key = key
            self.keyMark = keyMark
            self.value = value
        }
    }

    /// The three shapes of a value.
    package enum Content: Sendable, Equatable {
        /// `isFlow` where it is written with braces.
        case mapping([Entry], isFlow: Bool)
        /// `isPlain` where it is written without quotes, so that it may be a number or `null`.
        case scalar(String, isPlain: Bool)
        /// A list.
        case sequence([YAMLNode])
    }

    /// The value itself.
    package var content: Content
    /// Its place.
    package var mark: Mark

    /// A value at `mark`.
    package init(content: Content, mark: Mark) {
        self.content = content
        self.mark = mark
    }

    /// True if this is what `null`, `~` and nothing at all mean.
    package var isNull: Bool {
        if case .scalar(let text, isPlain: true) = content {
            ["", "~", "null", "Null", "NULL"].contains(text)
        } else {
            false
        }
    }

    /// Its shape, for messages.
    package var kind: String {
        switch content {
        case .mapping: "a mapping"
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        }
    }
}

/// A key that stands in its mapping a second time.
package struct DuplicateKey: Sendable, Equatable {
    /// The way to it.
    package var keyPath: String
    /// The second place.
    package var mark: Mark
    /// The first place.
    package var first: Mark

    /// A key at both places.
    package init(keyPath: String, mark: Mark, first: Mark) {
        self.keyPath = keyPath
        self.mark = mark
        self.first = first
    }
}

/// A text that is no YAML that we read.
package struct YAMLError: Error, Sendable, Equatable {
    /// The fault; libyaml's own words where it found the fault.
    package var message: String
    /// The place of the fault.
    package var mark: Mark

    /// A fault.
    package init(message: String, mark: Mark) {
        self.message = message
        self.mark = mark
    }
}
