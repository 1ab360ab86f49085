// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// A real Apache httpd with `mod_auth_form` and `mod_session_cookie` in front of a plain upstream. The login page is
/// the document of its 401; the form goes to `/login/submit` and carries a hidden field.
///
/// User ann, password demo. The name of an authenticated user is sent on as `X-Remote-User`.
final class ApacheForm: Sendable {
    /// The port that it listens on.
    let port = Ports.next()
    private let folder: Folder
    private let child: Child

    /// Starts it.
    init(before upstream: UInt16) async throws {
        folder = try Folder()
        // Its processes give up root.
        unsafe chmod(folder.path, 0o755)
        folder.write("ann:{SHA}ieSV55Qc+eQOaYDRSha/AjzNTJE=\n", to: "users", mode: 0o644)
        folder.makeFolder("pages", mode: 0o755)
        unsafe chmod(folder.path(of: "pages"), 0o755)
        folder.write(Self.page, to: "pages/login.html", mode: 0o644)
        folder.write("Welcome\n", to: "pages/welcome.html", mode: 0o644)
        let modules = [
            "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_form", "request", "session",
            "session_cookie", "proxy", "proxy_http", "headers", "alias", "mime",
        ]
        let authentication = """
                    AuthType form
                    AuthName Apache
                    AuthFormProvider file
                    AuthUserFile \(folder.path)/users
                    Session On
                    SessionCookieName session path=/;httponly
            """
        let configuration = folder.write(
            """
            ServerRoot \(folder.path)
            ServerName localhost
            DefaultRuntimeDir \(folder.path)
            PidFile \(folder.path)/pid
            Mutex file:\(folder.path) default
            Listen 127.0.0.1:\(port)
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            \(getuid() == 0 ? "User nobody\nGroup nogroup" : "")
            ErrorLog \(folder.path)/error.log
            LogFormat "%<m %U %>s" told
            CustomLog \(folder.path)/access.log told
            StartServers 1
            ServerLimit 2
            MaxRequestWorkers 50
            TypesConfig /dev/null
            AddType text/html .html
            Alias /login/ \(folder.path)/pages/
            ErrorDocument 401 /login/login.html
            <Directory \(folder.path)/pages>
                Require all granted
            </Directory>
            <Location /open/>
            \(authentication)
                Require valid-user
                RequestHeader set X-Remote-User "expr=%{REMOTE_USER}"
            </Location>
            <Location /login/submit>
                SetHandler form-login-handler
                AuthFormLoginSuccessLocation /login/welcome.html
            \(authentication)
            </Location>
            ProxyPass /open/ http://127.0.0.1:\(upstream)/open/

            """, to: "httpd.conf", mode: 0o644)
        child = try await Child.start(
            Child.Start(
                arguments: ["/usr/sbin/apache2", "-X", "-f", configuration], environment: baseEnvironment(folder),
                folder: folder.path, output: folder.path(of: "out"), errors: folder.path(of: "err")))
        let port = port
        guard await eventually({ (try? RawConnection(port: port)) != nil }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "apache2: \(folder.text(of: "err"))\(folder.text(of: "error.log"))")
        }
    }

    /// The requests that it answered: method, path, status.
    var requests: [Substring] { folder.text(of: "access.log").split(separator: "\n") }
    /// Number of submitted forms.
    var submissions: Int { requests.count { $0.hasPrefix("POST /login/submit") } }

    /// Ends it.
    func stop() async {
        await child.end()
        folder.removeAll()
    }

    private static let page = """
        <!DOCTYPE html><title>Log in</title>
        <!-- <form action="/old"><input name="httpd_username"></form> -->
        <form method="POST" action="/login/submit">
        <input name="httpd_username"><input type="password" name="httpd_password">
        <input type="hidden" name="from" value="page &amp; form"><input type="submit"></form>

        """
}
