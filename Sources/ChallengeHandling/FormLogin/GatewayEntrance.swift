// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The address that shows the login page, and who chose it.
struct GatewayEntrance {
    /// Who chose the address, the most trusted first.
    enum Source: Equatable {
        /// The configuration, by `login.page`, or nothing of a page is needed. It shows the page with and without a session.
        case named
        /// The configuration: `prove-at`, or the upstream's own address. It showed the page without a session.
        case configured
        /// A caller, by the request that was challenged.
        case challenged
    }

    /// The address that was asked for; redirects may have led on from there.
    let address: WebURL
    let source: Source
    let page: GatewayVisit.Page

    /// True if a caller chose which page is filled in.
    var isCallers: Bool { source == .challenged }

    /// True if `url` is where a caller met the page: it may show the form always, so that the form there proves nothing.
    func isResource(_ url: WebURL) -> Bool { isCallers && url.path == address.path }

    /// The entrance as it stands for the step on `page`: a later page is the server's answer to what was submitted before.
    func leading(to page: GatewayVisit.Page, isFirst: Bool) -> GatewayEntrance {
        isFirst ? self : GatewayEntrance(address: address, source: .named, page: page)
    }
}

extension WebURL {
    /// The address without its query, as a login may ask for it: `nil` where servers may read its path in more than one way.
    var plain: WebURL? {
        let lowered = path.lowercased()
        let isDoubtful =
            lowered.contains("//") || lowered.contains(";") || lowered.contains("\\")
            || ["%2e", "%2f", "%5c", "%25", "%3b"].contains { lowered.contains($0) }
            || path.split(separator: "/").contains { $0 == "." || $0 == ".." }
        return isDoubtful ? nil : WebURL(origin: origin, path: path)
    }

    /// The folders that the address lies in, from the root on, each without its last slash: `""` and `/app` for `/app/home`.
    var folders: Set<String> {
        var folders: Set<String> = [""]
        var end = path.startIndex
        while let slash = path[end...].dropFirst().firstIndex(of: "/") {
            folders.insert(path[..<slash].lowercased())
            end = slash
        }
        return folders
    }

    /// The path without parameters (`;jsessionid=…`), in which frameworks keep what changes.
    var pathWithoutParameters: String { String(path.prefix { $0 != ";" }) }
}
