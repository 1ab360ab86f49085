// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// How HAProxy begins a connection (SPOE.txt section 3.2.4).
struct SPOPHello: Equatable {
    /// The largest frame that both take, in bytes.
    let frameLimit: Int
    /// True if it only looks whether somebody is there.
    let isHealthCheck: Bool

    /// What a frame carries.
    init(_ payload: ByteRange, in bytes: Span<UInt8>) throws(SPOPFault) {
        var scanner = SPOPScanner(payload)
        var (versions, size, hasCapabilities, isHealthCheck): (ByteRange?, UInt64?, Bool, Bool) = (
            nil, nil, false, false
        )
        while !scanner.isAtEnd {
            let name = try scanner.text(in: bytes)
            switch try scanner.value(in: bytes) {
            case .text(let value) where bytes.matches(name, exactly: "supported-versions"): versions = value
            case .text where bytes.matches(name, exactly: "capabilities"): hasCapabilities = true
            case .number(let value) where bytes.matches(name, exactly: "max-frame-size"): size = value
            case .flag(let value) where bytes.matches(name, exactly: "healthcheck"): isHealthCheck = value
            case .flag, .number, .other, .text: break
            }
        }
        guard let versions else { throw .versionMissing }
        // One that says 2.1 knows 2.0.
        guard
            bytes.text(versions).split(separator: ",").contains(where: { version in
                version.drop { $0 == " " }.hasPrefix("2.")
            })
        else { throw .versionUnsupported }
        guard let size else { throw .frameSizeMissing }
        guard hasCapabilities else { throw .capabilitiesMissing }
        guard size >= SPOPFrame.smallest else { throw .frameSizeUnsupported }
        frameLimit = Int(min(size, UInt64(SPOPFrame.largest)))
        self.isHealthCheck = isHealthCheck
    }
}
