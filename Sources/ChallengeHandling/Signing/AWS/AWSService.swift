// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The service of a signature, and the region that it runs in.
package struct AWSService: Sendable, Hashable {
    /// Name in signatures: `s3`, `sts`, `execute-api`.
    package var name: String
    /// Region in signatures: `eu-west-1`.
    package var region: String

    /// Creates a service.
    package init(_ name: String, region: String) {
        self.name = name
        self.region = region
    }

    /// Services that store objects, whose keys are paths: they decode a path once, and never normalise it.
    private static let stores: Set<String> = ["s3", "s3-object-lambda", "s3-outposts", "s3express"]

    /// True if the service stores objects.
    ///
    /// Its signature covers the path as it is sent; every other service normalises the path and encodes it twice.
    var isStore: Bool { Self.stores.contains(name) }

    /// True if the service demands the body's digest as a field.
    var wantsDigestField: Bool { isStore || name == "aoss" || name == "vpc-lattice-svcs" }

    /// True if the service takes a body without a digest.
    var takesUnsignedBodies: Bool { isStore || name == "vpc-lattice-svcs" }

    /// Returns whether `text` can be a part of the scope of a signature.
    static func isScopePart(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "-") }
    }
}
