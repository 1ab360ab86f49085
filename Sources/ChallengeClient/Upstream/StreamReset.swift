// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a stream of HTTP/2 was reset (RFC 9113 §7), by the server or by us because of what it sent.
struct StreamReset {
    private let code: Int?

    /// From libcurl's words: `HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)`.
    init(_ text: String) {
        let parts = text.split(separator: "(err ")
        code = parts.count == 2 ? Int(parts[1].prefix(while: \.isNumber)) : nil
    }

    /// What that means for the transfer.
    var fault: TransferFault {
        switch code {
        // PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR; none: the end of a stream in the middle of a head.
        case nil, 1, 6, 9:
            .protocolError("its answer is not HTTP as the standard has it")
        case 11:
            .unreachable("it asks for fewer requests (ENHANCE_YOUR_CALM)")
        case 12:
            .unreachable("it finds TLS as it was agreed on too weak for HTTP/2 (INADEQUATE_SECURITY)")
        case 13:
            .unreachable("it wants HTTP/1.1 for this request: set `http: 1.1`")
        default:
            .unreachable("it broke the request off")
        }
    }
}
