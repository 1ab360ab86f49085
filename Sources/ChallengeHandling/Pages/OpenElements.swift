// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The elements of a page whose end has not come, as far as they decide which inputs a form has (WHATWG HTML §13.2.4.2).
struct OpenElements {
    /// An open element, and what its place means for an input in it.
    struct Element {
        let name: TagName
        /// The nearest form around the element, or the element itself.
        var form: Int?
        /// The list around an option.
        var list: Int?
        /// The button or the list's option that the text belongs to.
        var label: Label?
        /// True within a disabled fieldset, outside its first legend.
        var isDisabled = false
        /// For a fieldset: true if another one around it is disabled.
        var isDisabledAround = false
        var hasLegend = false
        /// For a group of options: true if the group is disabled.
        var disablesOptions = false
        var isInDatalist = false
        var isInTemplate = false
        /// True within SVG and MathML.
        var isForeign = false
        var direction = HTMLPage.Direction.leftToRight
    }

    enum Label: Equatable {
        case button(Int)
        case option(list: Int)
    }

    /// Elements at which a search for an open one ends.
    enum Boundary { case none, standard, button, table }

    /// Number of open elements that are remembered; browsers nest no deeper.
    private static let depthLimit = 512
    /// Number of elements that all searches together may look at.
    private static let stepLimit = 2_000_000

    private(set) var elements: [Element] = []
    /// Number of open elements of each kind.
    private var counts = [Int](repeating: 0, count: TagName.Element.allCases.count)
    private var steps = 0

    var last: Element? { elements.last }

    /// True if the searches have taken too long: the page is not read further.
    var isExhausted: Bool { steps > Self.stepLimit }

    /// True if the next element is a table's own, outside its cells.
    var isInTable: Bool {
        switch elements.last?.name.element {
        case .table, .tbody, .thead, .tfoot, .tr: true
        default: false
        }
    }

    /// Adds an element, which inherits what its parent means for inputs. `change` says what differs.
    mutating func push(_ name: TagName, _ change: (inout Element) -> Void = { _ in }) {
        guard elements.count < Self.depthLimit else { return }
        var element =
            elements.last.map { parent in
                Element(
                    name: name, form: parent.form, list: parent.list, label: parent.label,
                    isDisabled: parent.isDisabled, isInDatalist: parent.isInDatalist,
                    isInTemplate: parent.isInTemplate, isForeign: parent.isForeign, direction: parent.direction)
            } ?? Element(name: name)
        change(&element)
        counts[Int(name.element.rawValue)] += 1
        elements.append(element)
    }

    /// Changes the innermost element.
    mutating func changeLast(_ change: (inout Element) -> Void) {
        guard !elements.isEmpty else { return }
        change(&elements[elements.count - 1])
    }

    /// Removes the innermost element.
    mutating func removeLast() -> Element? {
        guard let element = elements.popLast() else { return nil }
        counts[Int(element.name.element.rawValue)] -= 1
        return element
    }

    /// Removes one element, and leaves open what is in it.
    mutating func remove(at index: Int) {
        let element = elements.remove(at: index)
        counts[Int(element.name.element.rawValue)] -= 1
    }

    /// Returns the index of the innermost such element; `nil` if a boundary comes first.
    mutating func index(of element: TagName.Element, _ boundary: Boundary = .standard) -> Int? {
        counts[Int(element.rawValue)] == 0 ? nil : index(boundary) { $0.element == element }
    }

    /// Returns the index of the innermost element that `isWanted`; `nil` if a boundary comes first.
    mutating func index(_ boundary: Boundary = .standard, _ isWanted: (TagName) -> Bool) -> Int? {
        index(isWanted) { name in
            switch boundary {
            case .none: false
            case .standard: name.traits.contains(.scope)
            case .button: name.traits.contains(.scope) || name.element == .button
            case .table: name.element == .table || name.element == .template
            }
        }
    }

    /// Returns the index of the innermost element of that name; `nil` if a special element comes first.
    mutating func ordinaryIndex(_ name: TagName) -> Int? {
        index({ $0 == name }, before: { $0.traits.contains(.special) })
    }

    /// Returns the index of the innermost element of that name within SVG or MathML; `nil` outside.
    mutating func foreignIndex(_ name: TagName) -> Int? {
        var index = elements.count
        while index > 0, elements[index - 1].isForeign, !isExhausted {
            index -= 1
            steps += 1
            if elements[index].name == name { return index }
        }
        return nil
    }

    /// Returns the index of the item that a new one ends (WHATWG HTML §13.2.6.4.7, `li`, `dd` and `dt`).
    mutating func itemIndex(_ isItem: (TagName) -> Bool) -> Int? {
        index(isItem) { name in
            let isPassed = name.element == .address || name.element == .div || name.element == .p
            return name.traits.contains(.special) && !isPassed
        }
    }

    /// Returns the index of the innermost element that `isWanted`; `nil` if one that `isBoundary` comes first.
    private mutating func index(_ isWanted: (TagName) -> Bool, before isBoundary: (TagName) -> Bool) -> Int? {
        var index = elements.count
        while index > 0, !isExhausted {
            index -= 1
            steps += 1
            let name = elements[index].name
            if isWanted(name) { return index }
            if isBoundary(name) { return nil }
        }
        return nil
    }

    /// Returns true if an element above `index` is special.
    func hasSpecial(above index: Int) -> Bool {
        elements[(index + 1)...].contains { $0.name.traits.contains(.special) }
    }
}
