// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// All options that exist here, for comparison with what the installed libcurl says of them.
package enum OptionCatalog {
    /// The types of argument that we set.
    package enum Kind: Sendable {
        /// `struct curl_blob *`.
        case blob
        /// `struct curl_slist *`.
        case list
        /// `long`.
        case long
        /// `curl_off_t`.
        case offset
        /// `char *`.
        case string
    }

    /// Numbers (`CURLoption`) and the type that we take each to have.
    package static var entries: [(id: UInt32, kind: Kind)] {
        EasyOption<Bool>.all.map { ($0.id.rawValue, .long) } + EasyOption<Int>.all.map { ($0.id.rawValue, .long) }
            + EasyOption<Duration>.all.map { ($0.id.rawValue, .long) }
            + EasyOption<Int64>.all.map { ($0.id.rawValue, .offset) }
            + EasyOption<String>.all.map { ($0.id.rawValue, .string) }
            + EasyOption<Blob>.all.map { ($0.id.rawValue, .blob) }
            + EasyOption<HeaderList>.all.map { ($0.id.rawValue, .list) }
    }

    /// A sentence if the installed libcurl does not know the option of that number, or knows it as something else.
    package static func mismatch(id: UInt32, kind: Kind) -> String? {
        guard let option = unsafe curl_easy_option_by_id(CURLoption(rawValue: id)) else {
            return "libcurl \(CurlFeatures.installed.version) has no option \(id)."
        }
        let type = unsafe option.pointee.type
        let agrees =
            switch kind {
            case .blob: type == CURLOT_BLOB
            case .list: type == CURLOT_SLIST
            case .long: type == CURLOT_LONG || type == CURLOT_VALUES
            case .offset: type == CURLOT_OFF_T
            case .string: type == CURLOT_STRING
            }
        return agrees ? nil : unsafe "CURLOPT_\(String(cString: option.pointee.name)) is no \(kind)."
    }
}
