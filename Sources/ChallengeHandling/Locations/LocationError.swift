// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A text is no location, or no location pattern that could ever match.
public struct LocationError: Error, Sendable, Hashable {
    /// What is wrong and, where there is one, the right way to write it; without the text itself.
    public var reason: String

    /// An error.
    public init(reason: String) {
        self.reason = reason
    }
}

extension LocationError: CustomStringConvertible {
    /// The reason.
    public var description: String { reason }
}
