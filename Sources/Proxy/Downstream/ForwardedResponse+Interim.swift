// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

extension ForwardedResponse {
    /// Writes an interim response (RFC 9110 §15.2), whose ranges mean `bytes`. Nothing where it must not go: to a caller of
    /// HTTP/1.0, who knows none, and behind the beginning of the final one.
    ///
    /// It may precede a challenge that is answered here, and belongs to nobody then; so what a session or a login is made
    /// of stays here.
    func writeInterim(_ head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        guard version == .http11, !hasBegun, head.isInterim else { return }
        Self.writeStatusLine(head, in: bytes, to: &output)
        for line in head.fields where !line.isHopByHop {
            switch line.kind {
            case .authenticationInfo, .contentLength, .mfpChallenge, .mfpConflict, .setCookie, .wwwAuthenticate:
                continue
            default:
                output.append(bytes.extracting(line.name.start..<line.value.end))
                output.append("\r\n")
            }
        }
        // 100 without fields is what callers know since ever.
        if head.status != 100 { output.append(Self.via(head)) }
        ResponseWriter.endOfHead(to: &output)
    }
}
