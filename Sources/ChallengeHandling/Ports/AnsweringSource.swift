// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Source that gave the value of a credential, and the way to change the value there.
public struct AnsweringSource: Sendable, Equatable {
    /// Name of the source for callers, without paths: "the keyring".
    public var kind: String
    /// Name of the source for operators, with its path: "the keyring /var/lib/countersign/keyring".
    public var name: String
    /// Sentence on changing the value in the source, without paths.
    public var change: String

    /// Creates a source; without `name`, operators get `kind`.
    public init(kind: String, name: String? = nil, change: String) {
        self.kind = kind
        self.name = name ?? kind
        self.change = change
    }
}
