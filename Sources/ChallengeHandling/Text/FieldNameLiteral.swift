// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension HTTPField.Name {
    /// Creates a name that the program itself spells.
    ///
    /// Never for a name that a file or a peer has sent: the process ends if it is not a token (RFC 9110 §5.1).
    init(literal name: StaticString) {
        guard let name = HTTPField.Name("\(name)") else { preconditionFailure("\(name) is not the name of a field") }
        self = name
    }
}
