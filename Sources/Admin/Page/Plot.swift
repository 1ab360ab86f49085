// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A small line drawn of numbers, as SVG within a page; gaps where there is none.
struct Plot {
    private static let width = 240.0
    private static let height = 48.0

    /// The numbers, the oldest first.
    var values: [Double?]
    /// What it shows, for who cannot see it.
    var label: String

    func write(to page: inout HTMLText) {
        page.markup("<svg viewBox=\"0 0 240 48\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"")
        page.escaped(label)
        page.markup("\">")
        let known = values.compactMap(\.self)
        if let most = known.max(), values.count > 1 {
            page.markup("<path class=\"line\" d=\"")
            page.escaped(path(most: most))
            page.markup("\"/>")
        }
        page.markup("</svg>")
    }

    private func path(most: Double) -> String {
        var path = ""
        var isDrawing = false
        for (index, value) in values.enumerated() {
            guard let value, value.isFinite else {
                isDrawing = false
                continue
            }
            let x = Double(index) * Self.width / Double(values.count - 1)
            let y = most > 0 ? Self.height - 2 - value / most * (Self.height - 4) : Self.height - 2
            // A single point, with gaps around it, is a line of no length, whose round ends are seen.
            path += isDrawing ? "L" : "M"
            path += "\(Self.rounded(x)) \(Self.rounded(y))"
            if !isDrawing { path += "h0" }
            isDrawing = true
        }
        return path
    }

    private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }
}
