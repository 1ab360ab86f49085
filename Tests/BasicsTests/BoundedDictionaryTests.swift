// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

@Suite("A dictionary with a limit")
struct BoundedDictionaryTests {
    @Test("the entry that was stored first makes room, also if it was stored again")
    func oldest() {
        var known = BoundedDictionary<String, Int>(limit: 2)
        known.store(1, for: "a")
        known.store(2, for: "b")
        known.store(3, for: "a")
        known.store(4, for: "c")
        #expect(known.entries == ["b": 2, "c": 4])
    }

    @Test("an entry that is removed and stored again is the latest, and takes no place twice")
    func latest() {
        var known = BoundedDictionary<String, Int>(limit: 2)
        known.store(1, for: "a")
        known.store(2, for: "b")
        known.remove("a")
        known.remove("a")
        #expect(known["a"] == nil && known["b"] == 2)
        known.store(3, for: "a")
        known.store(4, for: "c")
        #expect(known.entries == ["a": 3, "c": 4])
    }
}
