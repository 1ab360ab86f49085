// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// A JSON value that holds secrets: the answer to a security check. It never prints.
public struct SecretJSON: Sendable, Equatable {
    /// The value as one JSON text in UTF-8.
    public let text: Secret

    /// A value that somebody made without a template. The value itself is not protected; this is.
    public init(_ value: JSONValue) {
        text = Secret(value.serialized())
    }

    /// An object of such values, its names in order.
    public init(object members: [String: SecretJSON]) {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += JSONValue.string(name).serialized()
            bytes.append(UInt8(ascii: ":"))
            bytes += value.text.revealBytes()
        }
        bytes.append(UInt8(ascii: "}"))
        text = Secret(bytes)
    }
}
