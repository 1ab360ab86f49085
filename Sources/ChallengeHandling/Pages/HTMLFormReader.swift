// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reader of the forms in a page: as much of the construction of its tree as decides which inputs a form has (WHATWG HTML
/// §13.2.6 and §4.10.18).
///
/// No script runs, so the contents of `noscript` count.
struct HTMLFormReader {
    private static let optionLimit = 16 * 1024
    private static let labelLimit = 200

    private var scanner: HTMLScanner
    private var open = OpenElements()
    /// The form whose end tag has not come.
    private var form: Int?
    private var options = 0
    private var optionText: [UInt8] = []
    /// The text area whose text follows.
    private var textArea: Int?
    private var documentDirection = HTMLPage.Direction.leftToRight

    private(set) var forms: [HTMLPage.Form] = []
    private(set) var controls: [HTMLPage.Input] = []
    private(set) var base: String?
    /// False if not the whole page was read.
    private(set) var isWhole = true

    init(_ bytes: [UInt8]) {
        scanner = HTMLScanner(bytes)
        while isWhole, !open.isExhausted {
            scanner.isForeign = open.last?.isForeign ?? false
            guard let token = scanner.next() else { break }
            switch token {
            case .tag(let tag):
                textArea = nil
                if tag.isEnd { end(tag) } else { begin(tag) }
            case .text(let range, let isRaw): read(range, isRaw)
            }
        }
        if open.isExhausted { isWhole = false }
        while open.last != nil { removeLast() }
    }

    private mutating func read(_ range: Range<Int>, _ isRaw: Bool) {
        guard !range.isEmpty else { return }
        if let index = textArea {
            var text = HTMLText.decoded(scanner.bytes[range], isAttribute: false)
            // The line feed right after the tag is not part of the text.
            if text.first == 0x0A { text.removeFirst() }
            controls[index].bytes = text
            return
        }
        guard !isRaw || scanner.isForeign, let label = open.last?.label else { return }
        let text = HTMLText.decoded(scanner.bytes[range], isAttribute: false)
        switch label {
        case .option: optionText += text
        case .button(let index):
            let left = max(0, Self.labelLimit - controls[index].label.utf8.count)
            controls[index].label += String(decoding: text.prefix(left), as: UTF8.self)
        }
    }
}

// Start tags.
extension HTMLFormReader {
    private mutating func begin(_ tag: HTMLScanner.Tag) {
        let name = tag.name
        if open.last?.isForeign == true {
            guard name.traits.contains(.breakout) else { return beginForeign(tag) }
            while open.last?.isForeign == true { removeLast() }
        }
        if name.traits.contains(.block), let index = open.index(of: .p, .button) { close(index) }
        let isInTemplate = open.last?.isInTemplate ?? false
        switch name.element {
        case .form: beginForm(tag, isInTemplate)
        case .input:
            endList()
            if !isInTemplate { addControl(tag) }
        case .textarea:
            endList()
            if !isInTemplate { textArea = addControl(tag) }
        case .button:
            if let index = open.index(of: .button) { close(index) }
            let index = isInTemplate ? nil : addControl(tag)
            push(tag) { $0.label = index.map { .button($0) } }
        case .select:
            if open.index(of: .select, .none) != nil { return endList() }
            let index = isInTemplate ? nil : addControl(tag)
            push(tag) { $0.list = index }
        case .option, .optgroup: beginOption(tag)
        case .fieldset:
            let isDisabled = scanner.attributes(of: tag).has("disabled")
            push(tag) {
                $0.isDisabledAround = $0.isDisabled
                $0.isDisabled = $0.isDisabled || isDisabled
            }
        case .legend:
            let parent = open.last
            let isFirst = parent.map { $0.name.element == .fieldset && !$0.hasLegend } ?? false
            if isFirst { open.changeLast { $0.hasLegend = true } }
            push(tag) { if isFirst, let parent { $0.isDisabled = parent.isDisabledAround } }
        case .datalist: push(tag) { $0.isInDatalist = true }
        case .template: push(tag) { $0.isInTemplate = true }
        case .base:
            if base == nil, !isInTemplate { base = scanner.attributes(of: tag)["href"].map(HTMLPage.trimmed) }
        case .svg, .math: if !tag.isSelfClosing { push(tag) { $0.isForeign = true } }
        case .html, .head, .body, .frameset: documentDirection = direction(of: tag) ?? documentDirection
        case .h1, .h2, .h3, .h4, .h5, .h6:
            if let top = open.last, top.name.element.isHeading { removeLast() }
            push(tag)
        case .li: beginItem(tag) { $0.element == .li }
        case .dd, .dt: beginItem(tag) { $0.element == .dd || $0.element == .dt }
        case .tbody, .thead, .tfoot, .caption, .tr, .td, .th: beginTablePart(tag)
        default: if name.traits.isDisjoint(with: [.void, .raw]) { push(tag) }
        }
    }

    private mutating func beginForeign(_ tag: HTMLScanner.Tag) {
        guard !tag.isSelfClosing else { return }
        push(tag, as: tag.name.foreign) { $0.isForeign = !tag.name.isIntegrationPoint }
    }

    private mutating func beginForm(_ tag: HTMLScanner.Tag, _ isInTemplate: Bool) {
        guard !isInTemplate else { return push(tag) }
        // A form within a form is ignored (WHATWG HTML §13.2.6.4.7).
        guard form == nil else { return }
        guard forms.count < HTMLPage.formLimit else { return isWhole = false }
        forms.append(HTMLPage.Form(scanner.attributes(of: tag)))
        let index = forms.count - 1
        form = index
        // In a table, a form has no contents, but gets the inputs up to its end tag.
        if !open.isInTable { push(tag) { $0.form = index } }
    }

    private mutating func beginOption(_ tag: HTMLScanner.Tag) {
        let isOption = tag.name.element == .option
        let list = open.last?.list
        while let top = open.last?.name, list != nil ? top.traits.contains(.implied) : top.element == .option {
            if list != nil, isOption, top.element == .optgroup { break }
            removeLast()
        }
        let attributes = scanner.attributes(of: tag)
        let isDisabled = attributes.has("disabled")
        let isInDisabledGroup = open.last?.disablesOptions ?? false
        guard isOption, let list else { return push(tag) { $0.disablesOptions = !isOption && isDisabled } }
        options += 1
        guard options <= Self.optionLimit else { return isWhole = false }
        controls[list].options.append(
            .init(
                value: attributes.bytes("value"), isSelected: attributes.has("selected"),
                isDisabled: isDisabled || isInDisabledGroup, isInGroup: open.last?.name.element == .optgroup))
        optionText = []
        push(tag) { $0.label = .option(list: list) }
    }

    private mutating func beginItem(_ tag: HTMLScanner.Tag, _ isItem: (TagName) -> Bool) {
        if let index = open.itemIndex(isItem) { close(index) }
        push(tag)
    }

    private mutating func beginTablePart(_ tag: HTMLScanner.Tag) {
        guard open.index(of: .table, .table) != nil else { return }
        let context: Set<TagName.Element> =
            switch tag.name.element {
            case .tr: [.table, .tbody, .thead, .tfoot]
            case .td, .th: [.table, .tbody, .thead, .tfoot, .tr]
            default: [.table]
            }
        while let top = open.last, !context.contains(top.name.element) { removeLast() }
        push(tag)
    }

    /// Adds an input, and returns its index; `nil` if there are too many.
    @discardableResult
    private mutating func addControl(_ tag: HTMLScanner.Tag) -> Int? {
        guard controls.count < HTMLPage.inputLimit else {
            isWhole = false
            return nil
        }
        var control = HTMLPage.Input(scanner.attributes(of: tag), of: tag.name.element)
        let parent = open.last
        // Without the attribute `form` the owner is the form that has not ended, else one around the input.
        control.owner = form ?? parent?.form
        control.isDisabled = control.isDisabled || parent?.isDisabled ?? false
        control.isInDatalist = parent?.isInDatalist ?? false
        let inherited = control.type == "tel" ? .leftToRight : parent?.direction ?? documentDirection
        control.direction = inherited == .byText ? .unknown : inherited
        if let own = direction(of: tag) { control.direction = own }
        controls.append(control)
        return controls.count - 1
    }

    private mutating func push(
        _ tag: HTMLScanner.Tag, as name: TagName? = nil, _ change: (inout OpenElements.Element) -> Void = { _ in }
    ) {
        let own = direction(of: tag)
        let isFirst = open.last == nil
        open.push(name ?? tag.name) { [documentDirection] element in
            if let own { element.direction = own } else if isFirst { element.direction = documentDirection }
            change(&element)
        }
    }

    private func direction(of tag: HTMLScanner.Tag) -> HTMLPage.Direction? {
        guard let range = tag.direction else { return nil }
        return switch String(decoding: scanner.bytes[range], as: UTF8.self).lowercased() {
        case "ltr": .leftToRight
        case "rtl": .rightToLeft
        case "auto": .byText
        default: nil
        }
    }
}

// End tags.
extension HTMLFormReader {
    private mutating func end(_ tag: HTMLScanner.Tag) {
        let name = tag.name
        if let index = open.foreignIndex(name) { return close(index) }
        switch name.element {
        case .form: endForm()
        case .html, .body, .head: return
        case .p: if let index = open.index(of: .p, .button) { close(index) }
        case .h1, .h2, .h3, .h4, .h5, .h6:
            if let index = open.index(.standard, { $0.element.isHeading }) { close(index) }
        case .template: if let index = open.index(of: .template, .none) { close(index) }
        case .table, .tbody, .thead, .tfoot, .tr, .td, .th, .caption:
            if let index = open.index(.table, { $0 == name }) { close(index) }
        default:
            if name.traits.contains(.formatting) {
                guard let index = open.index(.standard, { $0 == name }) else { return }
                if open.hasSpecial(above: index) { open.remove(at: index) } else { close(index) }
            } else if name.traits.contains(.special) {
                if let index = open.index(.standard, { $0 == name }) { close(index) }
            } else if let index = open.ordinaryIndex(name) {
                close(index)
            }
        }
    }

    private mutating func endForm() {
        guard open.last?.isInTemplate != true else { return }
        if let form { forms[form].isEnded = true }
        form = nil
        guard let index = open.index(of: .form) else { return }
        while open.elements.count - 1 > index, open.last?.name.traits.contains(.implied) == true { removeLast() }
        // What is open in the form stays there, and so do its later inputs.
        if open.elements.count - 1 == index { removeLast() } else { open.remove(at: index) }
    }

    private mutating func endList() {
        if let index = open.index(of: .select) { close(index) }
    }

    /// Closes the element at `index`, and all in it.
    private mutating func close(_ index: Int) {
        while open.elements.count > index { removeLast() }
    }

    private mutating func removeLast() {
        guard let element = open.removeLast(), element.name.element == .option,
            case .option(let list)? = element.label, !controls[list].options.isEmpty
        else { return }
        controls[list].options[controls[list].options.count - 1].text = HTMLPage.collapsed(optionText)
        optionText = []
    }
}

extension TagName.Element {
    fileprivate var isHeading: Bool {
        switch self {
        case .h1, .h2, .h3, .h4, .h5, .h6: true
        default: false
        }
    }
}
