// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How names of fields are compared where a source cannot write them as they are.
enum FieldName {
    /// In lower case, and `-` for every sign but ASCII letters and digits: `CLIENT_ID` and `client-id` are the same.
    static func folded(_ name: String) -> String {
        map(name, else: "-").lowercased()
    }

    /// As part of an environment variable: in upper case, and `_` for every sign but ASCII letters and digits.
    static func environment(_ name: String) -> String {
        map(name, else: "_").uppercased()
    }

    private static func map(_ name: String, else replacement: Unicode.Scalar) -> String {
        var text = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            let isKept = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
            text.append(isKept ? scalar : replacement)
        }
        return String(text)
    }
}
