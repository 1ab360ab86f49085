// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Settings {
    /// Reads and checks the file at `path`. Every problem of it at once, in the order of the file; the settings where
    /// none of these is an error.
    ///
    /// `environment` is what `${NAME}` in a value stands for.
    package static func load(path: String, environment: [String: String]) -> (settings: Settings?, problems: [Problem])
    {
        let problem = Problem(
            file: path, mark: nil, keyPath: "", message: "this build reads no configuration yet", severity: .error)
        return (nil, [problem])
    }
}
