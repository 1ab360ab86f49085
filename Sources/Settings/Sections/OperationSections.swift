// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

extension LimitSettings {
    /// What a number of callers or exchanges can be.
    static let counts = 1...1_048_576

    /// `limits:`.
    static func read(_ value: Value) -> LimitSettings {
        var settings = LimitSettings()
        guard let fields = value.fields() else { return settings }
        if let callers = fields["callers"]?.integer(in: counts) { settings.callers = callers }
        if let exchanges = fields["exchanges"]?.integer(in: counts) { settings.exchanges = exchanges }
        if let waiters = fields["waiters"]?.integer(in: counts) { settings.waiters = waiters }
        if let head = fields["head"], let size = head.size() {
            if (1024...1_048_576).contains(size) {
                settings.head = size
            } else {
                head.report("must be from 1KiB to 1MiB")
            }
        }
        if let replay = fields["replay"]?.size() { settings.replay = replay }
        fields.finish()
        return settings
    }
}

extension WorkerCount {
    /// `workers:`.
    static func read(_ value: Value) -> WorkerCount {
        guard let text = value.text(), text != "auto" else { return .automatic }
        guard let number = Int(text), (1...64).contains(number) else {
            value.report("\"\(text)\" is neither auto nor a whole number from 1 to 64")
            return .automatic
        }
        return .exactly(number)
    }
}

extension AccessLogSettings {
    /// `access-log:`, a format or what there is to say besides.
    static func read(_ value: Value) -> AccessLogSettings {
        var settings = AccessLogSettings()
        guard value.isMapping else {
            if let format = value.choice(Format.self) { settings.format = format }
            return settings
        }
        guard let fields = value.fields() else { return settings }
        if let format = fields.required("format")?.choice(Format.self) { settings.format = format }
        if let to = fields["to"], let place = to.word(), place != "stdout" {
            if place.hasPrefix("/") {
                settings.path = place
            } else {
                to.report("\"\(place)\" is neither stdout nor the absolute path of a file")
            }
        }
        if let query = fields["query"]?.flag() { settings.query = query }
        fields.finish()
        return settings
    }
}

extension LogSettings {
    /// `log:`.
    static func read(_ value: Value) -> LogSettings {
        var settings = LogSettings()
        guard let fields = value.fields() else { return settings }
        if let level = fields["level"]?.choice(Level.self) { settings.level = level }
        if let format = fields["format"]?.choice(Format.self) { settings.format = format }
        fields.finish()
        return settings
    }
}
