// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A Digest challenge and its state: everything a signer needs except the password.
struct DigestImage: Sendable, Equatable {
    /// The challenge's parameters with the current nonce.
    var parameters: [AuthenticationChallenge.Parameter]
    /// The address that sent the challenge.
    var url: WebURL
    var clientNonce: String
    /// The count of the nonce's last use.
    var count: UInt32
    /// True if the server has accepted an answer.
    var isAccepted: Bool
}

extension DigestImage {
    private static let mark = Array("DIGEST1 ".utf8)
    private static let mostParameters = 16

    /// The image as bytes: `DIGEST1 `, the number of parameters, the parameters, then the other properties in order.
    /// `nil` if these bytes could not be decoded again.
    var encoded: SignerImage? {
        var writer = ImageWriter()
        writer.append(raw: Self.mark)
        writer.append(UInt16(clamping: parameters.count))
        for parameter in parameters {
            writer.append(parameter.name)
            writer.append(parameter.value)
        }
        writer.append("\(url)")
        writer.append(clientNonce)
        writer.append(count)
        writer.append(isAccepted)
        guard let image = SignerImage(writer.finish()), DigestImage(image) == self else { return nil }
        return image
    }

    /// Decodes an image that `encoded` has written; `nil` for anything else.
    init?(_ image: SignerImage) {
        var reader = ImageReader(image.bytes)
        guard let read = try? Self.read(&reader), reader.isAtEnd else { return nil }
        self = read
    }

    private static func read(_ reader: inout ImageReader) throws(SessionImageError) -> DigestImage {
        try reader.expect(mark)
        var parameters: [AuthenticationChallenge.Parameter] = []
        for _ in 0..<(try reader.count(atMost: mostParameters)) {
            let place = reader.position
            let name = try reader.text()
            guard !parameters.contains(where: { $0.name == name }) else {
                throw SessionImageError(.malformed, at: place)
            }
            parameters.append(.init(name: name, value: try reader.line()))
        }
        let place = reader.position
        guard let url = WebURL(try reader.text()) else { throw SessionImageError(.malformed, at: place) }
        return DigestImage(
            parameters: parameters, url: url, clientNonce: try reader.line(), count: try reader.uint32(),
            isAccepted: try reader.flag())
    }
}
