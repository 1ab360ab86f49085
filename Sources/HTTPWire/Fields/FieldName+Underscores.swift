// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// CGI names a field by capitals and underscores (RFC 3875 §4.1.18), and so do WSGI, Rack, PHP and others after it: to them
// `X_Api_Key` and `X-Api-Key` are one field.
extension FieldName {
    /// The field that a CGI program takes `name` for: underscores count as hyphens.
    public init(foldingUnderscoresIn name: Span<UInt8>) {
        var folded: [UInt8] = []
        folded.reserveCapacity(name.count)
        for index in name.indices { folded.append(name[index].inFieldName) }
        self.init(folded.span, ByteRange(start: 0, end: folded.count))
    }

    /// Returns the known field that a CGI program takes `name` for, if the name has an underscore; `other` for nearly every name.
    public static func imitated(by name: Span<UInt8>) -> FieldName {
        for index in name.indices where name[index] == UInt8(ascii: "_") {
            return FieldName(foldingUnderscoresIn: name)
        }
        return .other
    }

    /// Returns whether two names are one to a CGI program: in any case, underscores counting as hyphens.
    public static func areEqualToCGI(_ one: Span<UInt8>, _ two: Span<UInt8>) -> Bool {
        guard one.count == two.count else { return false }
        for index in one.indices where one[index].inFieldName != two[index].inFieldName { return false }
        return true
    }
}

extension FieldLine {
    /// The known field that a CGI program takes this one for, whose name is another by its underscores; `other` for nearly every line.
    public func imitated(in bytes: Span<UInt8>) -> FieldName {
        guard kind == .other, name.end <= bytes.count else { return .other }
        return FieldName.imitated(by: bytes.extracting(name.bounds))
    }

    /// Returns whether the line must not be forwarded from a trailer section, by its name or by what a CGI program takes it for.
    func isForbiddenInTrailers(in bytes: Span<UInt8>) -> Bool {
        kind.isForbiddenInTrailers || imitated(in: bytes).isForbiddenInTrailers
    }
}

extension UInt8 {
    /// The byte as names are compared by CGI.
    fileprivate var inFieldName: UInt8 { self == UInt8(ascii: "_") ? UInt8(ascii: "-") : lowercased }
}
