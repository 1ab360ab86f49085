// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Text of a request that is signed, with the parameters of the signature (RFC 9421 §2.5).
struct MessageBase {
    /// Inner list of the covered components, with the parameters: the member of `Signature-Input`.
    let input: String
    /// The signature base.
    let bytes: [UInt8]

    /// Creates the base of `components`; throws the first component without a value.
    init(
        _ components: [SignedComponent], _ parameters: StructuredParameters, _ values: MessageValues
    ) throws(MissingComponent) {
        let items = components.map(\.item)
        input = StructuredFieldWriter.text(of: .innerList(items, parameters))
        var bytes: [UInt8] = []
        for (component, item) in zip(components, items) {
            let identifier = StructuredFieldWriter.text(of: item)
            bytes += identifier.utf8
            bytes += ": ".utf8
            do throws(MessageValues.Missing) {
                bytes += try values.value(of: component)
            } catch {
                throw MissingComponent(text: "\(identifier) \(error.reason)")
            }
            bytes.append(.lineFeed)
        }
        bytes += "\"@signature-params\": \(input)".utf8
        self.bytes = bytes
    }
}

/// A component that a request does not have.
struct MissingComponent: Error {
    /// The component and the reason, as a sentence without its full stop.
    let text: String
}
