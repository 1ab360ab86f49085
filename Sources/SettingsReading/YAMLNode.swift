// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Value of a YAML document, with its position.
package struct YAMLNode: Sendable, Equatable {
    /// Key of a mapping, with its value.
    package struct Entry: Sendable, Equatable {
        /// Key.
        package var key: String
        /// Position of the key.
        package var keyMark: Mark
        /// Value.
        package var value: YAMLNode

        /// Creates an entry.
        package init(key: String, keyMark: Mark, value: YAMLNode) {
            self.key = key
            self.keyMark = keyMark
            self.value = value
        }
    }

    /// Content of a value, by its shape.
    package enum Content: Sendable, Equatable {
        /// A mapping. `isFlow`: it is written with braces.
        case mapping([Entry], isFlow: Bool)
        /// A single value. `isPlain`: it is written without quotes, so it may be a number or `null`.
        case scalar(String, isPlain: Bool)
        /// A list.
        case sequence([YAMLNode])
    }

    /// Content.
    package var content: Content
    /// Position.
    package var mark: Mark

    /// Creates a value at `mark`.
    package init(content: Content, mark: Mark) {
        self.content = content
        self.mark = mark
    }

    /// True for `null`, `~` and an absent value.
    package var isNull: Bool {
        if case .scalar(let text, isPlain: true) = content {
            ["", "~", "null", "Null", "NULL"].contains(text)
        } else {
            false
        }
    }

    /// Shape of the value, for messages.
    package var kind: String {
        switch content {
        case .mapping: "a mapping"
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        }
    }
}

extension YAMLNode {
    /// Creates a value that is not in a file.
    package init(_ content: Content) {
        self.init(content: content, mark: Mark(line: 1, column: 1))
    }

    /// Creates a list that is not in a file.
    package init(list elements: [YAMLNode]) {
        self.init(.sequence(elements))
    }

    /// Creates a single value that is not in a file.
    package static func scalar(_ text: String, isPlain: Bool = true) -> YAMLNode {
        YAMLNode(.scalar(text, isPlain: isPlain))
    }

    /// An empty mapping that is not in a file.
    package static let emptyMapping = YAMLNode(.mapping([], isFlow: true))

    /// A null that is not in a file.
    package static let null = scalar("null")
}

extension YAMLNode.Content {
    /// True for `{}`.
    var isEmptyMapping: Bool {
        if case .mapping(let entries, _) = self { entries.isEmpty } else { false }
    }
}

/// Key that its mapping has already.
package struct DuplicateKey: Sendable, Equatable {
    /// Key path.
    package var keyPath: String
    /// Second position.
    package var mark: Mark
    /// First position.
    package var first: Mark

    /// Creates a repeated key.
    package init(keyPath: String, mark: Mark, first: Mark) {
        self.keyPath = keyPath
        self.mark = mark
        self.first = first
    }
}

/// Text that is not valid YAML, or not within the supported subset.
package struct YAMLError: Error, Sendable, Equatable {
    /// Fault, in libyaml's words if libyaml found it.
    package var message: String
    /// Position of the fault.
    package var mark: Mark

    /// Creates an error.
    package init(message: String, mark: Mark) {
        self.message = message
        self.mark = mark
    }
}
