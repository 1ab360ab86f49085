// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
public import HTTPWire

extension FieldSink: SigningFields {
    /// Shows each field that is sent.
    public func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) { forEachField(body) }
}
