// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

extension MobileFirstConfiguration {
    /// Reads `mobilefirst` of an upstream at `origin`.
    package static func read(_ value: Value, origin: Origin?) -> MobileFirstConfiguration? {
        guard let fields = value.fields() else { return nil }
        let apiValue = fields["api"]
        let api = apiValue?.webURL(allowsQuery: false)
        let application = fields.required("application")?.word()
        let platform = fields["platform"]?.choice(Platform.self) ?? .ios
        let version = fields["version"]?.word() ?? "1.0"
        let scope = fields["scope"]?.words() ?? []
        fields.finish()
        let standard = origin.map { WebURL(origin: $0, path: "/mfp/api") }
        guard let application, let base = apiValue == nil ? standard : api else { return nil }
        let path = base.path.hasSuffix("/") ? String(base.path.dropLast()) : base.path
        return MobileFirstConfiguration(
            api: WebURL(origin: base.origin, path: path), application: application, platform: platform,
            version: version, scope: Scope(scope))
    }
}
