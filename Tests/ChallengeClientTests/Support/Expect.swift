// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// Holds a value against the one that is expected. `#expect` copies what it shows, and a machine cannot be copied.
func expect<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment(), sourceLocation: location)
}
