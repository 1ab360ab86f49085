// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

// The request as libcurl sends it.
extension CurlStream {
    /// Method and framing as a handle has them set, so that only what differs from the last request is set again.
    struct Shape: Equatable {
        var method = RequestMethod.get
        var otherMethod = ""
        var length: Int64?
        var hasBody = false
        /// True if the handle was taken back to HTTP/1.1.
        var isHTTP1 = false
    }

    /// Hands libcurl the fields of `head`.
    func takeFields(of head: FieldSink) throws(CurlError) {
        fields.reset()
        var hasAccept = false
        try head.forEachField { (name, value) throws(CurlError) in
            hasAccept = hasAccept || FieldName(name, ByteRange(start: 0, end: name.count)) == .accept
            try fields.append(name: name, value: value)
        }
        // libcurl would add `Accept: */*`.
        if !hasAccept { fields.suppress("Accept") }
    }

    /// Sets the handle up for `request`, and the fields that libcurl would otherwise add of its own.
    func apply(_ request: ExchangeRequest) throws(CurlError) {
        var wanted = Shape()
        wanted.method = request.method
        wanted.otherMethod = request.otherMethod
        wanted.hasBody = request.hasBody
        if case .length(let length) = request.framing { wanted.length = Int64(clamping: length) }
        if let versions { wanted.isHTTP1 = versions.applies(to: request) }
        if wanted.hasBody {
            // libcurl waits with the body where the field is given, for a second at most, and adds none where it is
            // suppressed (RFC 9110 §10.1.1).
            if request.expectsContinue {
                try fields.append(name: "Expect", value: "100-continue")
            } else {
                fields.suppress("Expect")
            }
        } else if case .length = request.framing {
            try fields.append(name: "Content-Length", value: "0")
        }
        guard wanted != shape else { return }
        if wanted.isHTTP1 != shape.isHTTP1 { try versions?.apply(isHTTP1: wanted.isHTTP1, to: easy) }
        // From the last shape to the neutral one, which is GET, …
        try easy.set(.upload, false)
        try easy.set(.httpGet, true)
        try easy.clear(.customRequest)
        // … and from there to this one.
        if wanted.hasBody {
            try easy.set(.upload, true)
            try easy.set(.bodySize, wanted.length ?? -1)
        }
        switch wanted.method {
        case .get where !wanted.hasBody: break
        case .head where !wanted.hasBody: try easy.set(.noBody, true)
        case .other: try easy.set(.customRequest, wanted.otherMethod)
        default: try easy.set(.customRequest, wanted.method.name)
        }
        shape = wanted
    }
}
