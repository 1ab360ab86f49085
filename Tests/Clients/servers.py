# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The servers: each has an open port and ports that demand a login, over the same files, and counts the requests of each port."""

import email.utils
import gzip
import hashlib
import os
import random
import shutil
import zipfile

import processes
from apache import ApacheApplication
from application import Application

SCHEMES = ("http", "https")
# The time of all files, which clients compare and keep.
TIME = 1_600_000_000
FIXED = {
    "TZ": "UTC", "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.com", "GIT_AUTHOR_DATE": f"{TIME} +0000",
    "GIT_COMMITTER_DATE": f"{TIME} +0000", "HGUSER": "ann", "HGRCPATH": "", "RESTIC_PASSWORD": "words"}
# Answers with what arrived; the edge of a multipart body, which is another each time, is replaced.
ECHO = """#!/usr/bin/python3
import hashlib, os, sys
body = sys.stdin.buffer.read()
_, _, edge = os.environ.get("CONTENT_TYPE", "").partition("boundary=")
if edge:
    body = body.replace(edge.encode(), b"EDGE")
print("Content-Type: text/plain; charset=utf-8\\n")
print(os.environ["REQUEST_METHOD"], ascii(os.environ["QUERY_STRING"]), len(body), hashlib.sha256(body).hexdigest())
"""
# The batch API of Git LFS: it names the address of each object, which is a file of the WebDAV server.
LFS = """#!/usr/bin/python3
import json, os, sys
asked = json.load(sys.stdin)
objects = []
for each in asked["objects"]:
    there = os.path.exists(f"{files}/lfs/{each['oid']}")
    actions = {} if there == (asked["operation"] == "upload") else {
        asked["operation"]: {"href": f"{os.environ['REQUEST_SCHEME']}://{os.environ['HTTP_HOST']}/lfs/{each['oid']}"}}
    objects.append({"oid": each["oid"], "size": each["size"], "actions": actions})
print("Content-Type: application/vnd.git-lfs+json\\n")
print(json.dumps({"transfer": "basic", "objects": objects}))
"""
HG = """#!/usr/bin/python3
from mercurial import demandimport; demandimport.enable()
from mercurial.hgweb import hgweb, wsgicgi
wsgicgi.launch(hgweb(b"{data}/hg"))
"""


SERVER = """<Server port="-1">
<GlobalNamingResources>
<Resource name="users" auth="Container" type="org.apache.catalina.UserDatabase" pathname="conf/users.xml"
    factory="org.apache.catalina.users.MemoryUserDatabaseFactory" readonly="true"/>
</GlobalNamingResources>
{services}</Server>
"""
WEB = """<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
<servlet><servlet-name>default</servlet-name><servlet-class>org.apache.catalina.servlets.WebdavServlet</servlet-class>
<init-param><param-name>readonly</param-name><param-value>false</param-value></init-param>
<init-param><param-name>listings</param-name><param-value>true</param-value></init-param></servlet>
<servlet-mapping><servlet-name>default</servlet-name><url-pattern>/*</url-pattern></servlet-mapping>
<mime-mapping><extension>txt</extension><mime-type>text/plain</mime-type></mime-mapping>
<mime-mapping><extension>html</extension><mime-type>text/html</mime-type></mime-mapping>
<mime-mapping><extension>bin</extension><mime-type>application/octet-stream</mime-type></mime-mapping>
{more}</web-app>
"""
CONSTRAINT = """<security-constraint>
<web-resource-collection><web-resource-name>all</web-resource-name><url-pattern>/*</url-pattern></web-resource-collection>
<auth-constraint><role-name>staff</role-name></auth-constraint></security-constraint>
<login-config><auth-method>FORM</auth-method>
<form-login-config><form-login-page>/login.html</form-login-page><form-error-page>/login.html</form-error-page></form-login-config>
</login-config><security-role><role-name>staff</role-name></security-role>
"""
LOGIN = """<!DOCTYPE html><html><body><form method="post" action="j_security_check">
<input name="j_username"><input type="password" name="j_password"><input type="submit"></form></body></html>
"""


class Data:
    """The files that all servers serve. Each run of a client begins with the same."""

    def __init__(self, folder):
        self.folder, self.template, self.path = folder, os.path.join(folder, "template"), os.path.join(folder, "data")
        self.files, self.copied = os.path.join(self.path, "files"), {}
        for name in ("template/files/folder/inner", "template/files/lfs", "template/restic", "data"):
            os.makedirs(os.path.join(folder, name))
        self.pages()
        self.python_packages()
        self.debian_packages()
        self.repositories()
        for top, folders, files in os.walk(self.template):
            for name in folders + files:
                os.utime(os.path.join(top, name), (TIME, TIME))
        if os.geteuid() == 0:
            self.run("chown", "-R", "www-data:www-data", self.template)
        self.reset()

    def run(self, *command, folder=None, environment=None):
        return processes.run(command, folder or self.folder, {**FIXED, "HOME": self.folder, **(environment or {})})

    def write(self, name, content):
        path = os.path.join(self.template, "files", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def pages(self):
        self.write("file.bin", random.Random(7).randbytes(300_000))
        self.write("text.txt", "".join(f"{number} hens and a fox\n" for number in range(1000)))
        self.write("empty.txt", "")
        self.write("login.html", LOGIN)
        self.write("index.html", '<html><a href="text.txt">text</a> <a href="folder/page.html">page</a> <a href="gone.html">gone</a></html>\n')
        self.write("folder/index.html", "<html>the folder</html>\n")
        self.write("folder/page.html", '<html><a href="../file.bin">file</a> <a href="inner/empty.html">more</a></html>\n')
        self.write("folder/inner/empty.html", "")
        for name in ("a[1].txt", "a|b.txt", "a^b.txt", "{c}.txt", "m\u00fcnchen.txt"):
            self.write(name, f"this is {name}\n")

    def python_packages(self):
        """Two packages as pip finds them; the first needs the second."""
        for name, needs in (("farm", "Requires-Dist: hens\n"), ("hens", "")):
            wheel, info = f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
            with zipfile.ZipFile(self.write(f"simple/{name}/{wheel}", ""), "w") as archive:
                for inner, text in (
                        (f"{name}.py", "count = 7\n"), (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"),
                        (f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: farm\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
                        (f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")):
                    archive.writestr(zipfile.ZipInfo(inner, (2020, 1, 1, 0, 0, 0)), text)
            self.write(f"simple/{name}/index.html", f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>\n')

    def debian_packages(self):
        """A package as apt finds it."""
        control = "Package: hens\nVersion: 1.0~1+b1\nArchitecture: all\nMaintainer: Ann <ann@example.com>\nDescription: seven hens\n"
        built = os.path.join(self.folder, "built")
        os.makedirs(os.path.join(built, "DEBIAN"))
        with open(os.path.join(built, "DEBIAN/control"), "w") as file:
            file.write(control)
        name = "hens_1.0~1+b1_all.deb"
        path = self.write(f"apt/{name}", "")
        self.run("dpkg-deb", "--build", "--root-owner-group", built, path, environment={"SOURCE_DATE_EPOCH": str(TIME)})
        with open(path, "rb") as file:
            package = file.read()
        index = f"{control}Filename: ./{name}\nSize: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n\n".encode()
        release = f"Origin: farm\nDate: {email.utils.formatdate(TIME, usegmt=True)}\nSHA256:\n"
        for name, content in (("Packages", index), ("Packages.gz", gzip.compress(index, mtime=TIME))):
            self.write(f"apt/{name}", content)
            release += f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        self.write("apt/Release", release)

    def repositories(self):
        """Repositories of git, Subversion and Mercurial, each with a few files."""
        git, hg = (os.path.join(self.template, name) for name in ("git/farm.git", "hg"))
        source = os.path.join(self.folder, "source")
        shutil.copytree(os.path.join(self.template, "files/folder"), source)
        self.run("git", "init", "-q", "-b", "main", source)
        self.run("git", "-C", source, "add", ".")
        self.run("git", "-C", source, "commit", "-q", "-m", "The farm")
        self.run("git", "clone", "-q", "--bare", source, git)
        self.run("git", "-C", git, "config", "http.receivepack", "true")
        self.run("git", "-C", git, "gc", "-q")
        shutil.rmtree(os.path.join(source, ".git"))
        self.run("svnadmin", "create", os.path.join(self.template, "svn"))
        address = "file://" + os.path.join(self.template, "svn/trunk")
        self.run("svn", "import", "-q", "-m", "The farm", source, address)
        shutil.copytree(source, hg)
        self.run("hg", "init", hg)
        self.run("hg", "--cwd", hg, "commit", "-q", "-A", "-d", f"{TIME} 0", "-m", "The farm")
        with open(os.path.join(hg, ".hg/hgrc"), "w") as file:
            file.write("[web]\npush_ssl = false\nallow_push = *\n")

    def state(self, name):
        """The names, sizes and times below a folder."""
        listed = [os.path.join(top, each) for top, folders, files in os.walk(os.path.join(self.path, name)) for each in folders + files]
        return {path: (os.stat(path).st_mtime_ns, os.stat(path).st_size) for path in listed}

    def reset(self):
        """Copies again what was changed."""
        for name in os.listdir(self.template):
            if name in self.copied and self.copied[name] == self.state(name):
                continue
            shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)
            self.run("cp", "-a", os.path.join(self.template, name), os.path.join(self.path, name))
            if name == "svn":
                # Or else Apache takes it for the changed one, which is in its cache.
                self.run("svnadmin", "setuuid", os.path.join(self.path, name))
            if os.geteuid() == 0:
                self.run("chown", "-R", "www-data:www-data", os.path.join(self.path, name))
            self.copied[name] = self.state(name)


class Served:
    """What the servers have in common. Beside `logins`: ports by (login, scheme), and the open port."""
    # The number of requests more than directly that a login may cost, by its name.
    logins = {}

    def __init__(self, folder, data):
        super().__init__(folder)
        self.data = data
        self.ports = {(login, scheme): processes.free_port() for login in self.logins for scheme in SCHEMES}
        # Basic and others give it up, for a user of their own.
        os.chmod(folder, 0o755)

    def log(self, port):
        """The file with a line for each request that came to this port."""
        return self.path(f"requests-{port}")

    def count(self, port):
        try:
            with open(self.log(port), "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    @property
    def certificate(self):
        return self.data.folder + "/tls/server.pem", self.data.folder + "/tls/server.key"


class Apache(Served, ApacheApplication):
    """WebDAV over HTTP/1.1 and HTTP/2, repositories, a proxy in front of a server of restic."""
    logins = {"basic": 1, "digest": 1}
    modules = [
        "auth_basic", "auth_digest", "cgid", "dav", "dav_fs", "dav_svn", "deflate", "filter", "http2", "proxy", "proxy_http", "ssl"]

    def start(self):
        restic = processes.free_port()
        self.serve(
            "rclone", "serve", "restic", "--cache-objects=false", "--addr", f"127.0.0.1:{restic}", self.data.path + "/restic",
            name="restic", answers=None)
        self.children[-1].wait_until_it_listens(restic)
        for name, text in (("echo", ECHO), ("lfs", LFS.replace("{files}", self.data.files)), ("hg", HG.format(data=self.data.path))):
            self.file(f"cgi/{name}", text, 0o755)
        self.folder_for_all("cgi")
        self.folder_for_all("locks")
        users = {"basic": self.basic_file(), "digest": self.digest_file("farm")}
        hosts = self.host(self.port)
        secure = "SSLEngine on\nSSLCertificateFile {}\nSSLCertificateKeyFile {}\nProtocols h2 http/1.1\n".format(*self.certificate)
        for (login, scheme), port in self.ports.items():
            rules = f"<Location />\nAuthType {login}\nAuthName farm\nAuthUserFile {users[login]}\nRequire valid-user\n</Location>\n"
            hosts += f"Listen 127.0.0.1:{port}\n" + self.host(port, rules + (secure if scheme == "https" else ""))
        self.serve_apache(f"""
LogFormat "%m %U %>s" requests
DocumentRoot {self.data.files}
ScriptSock {self.path("cgisock")}
AddOutputFilterByType DEFLATE text/plain text/html
DavLockDB {self.path("locks/locks")}
DirectoryIndex disabled
# A folder has a page for GET, and is a folder for the rest.
<If "%{{REQUEST_METHOD}} in {{ 'GET', 'HEAD' }}">
DirectoryIndex index.html
</If>
<Directory {self.data.files}>
Dav On
</Directory>
SetEnv GIT_PROJECT_ROOT {self.data.path}/git
SetEnv GIT_HTTP_EXPORT_ALL 1
ScriptAlias /git /usr/lib/git-core/git-http-backend
ScriptAlias /echo {self.path("cgi/echo")}
ScriptAlias /batch/objects/batch {self.path("cgi/lfs")}
ScriptAlias /hg {self.path("cgi/hg")}
<Location /svn>
DAV svn
SVNPath {self.data.path}/svn
</Location>
{hosts}""".replace("PROXY", f"ProxyPass /restic/ http://127.0.0.1:{restic}/"), answers="/text.txt")

    def host(self, port, rules=""):
        return f"<VirtualHost 127.0.0.1:{port}>\nCustomLog {self.log(port)} requests\nPROXY\n{rules}\n</VirtualHost>\n"


class Nginx(Served, Application):
    logins = {"basic": 1}

    def start(self):
        # Read by a process that has given up root.
        users = self.file("users", f"{self.username}:{{PLAIN}}{self.password}\n", 0o644)
        servers = self.server(self.port, "")
        for (_, scheme), port in self.ports.items():
            secure = " ssl http2;\nssl_certificate {};\nssl_certificate_key {};".format(*self.certificate) if scheme == "https" else ";"
            servers += self.server(port, f'auth_basic farm;\nauth_basic_user_file {users};', secure)
        kept = "\n".join(f"{kind}_temp_path {self.path(kind)};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = self.file("nginx.conf", f"""{'user www-data;' if self.is_root else ''}
worker_processes 1;
pid {self.path("nginx.pid")};
error_log {self.path("error.log")};
events {{}}
http {{
include /etc/nginx/mime.types;
log_format requests '$request_method $uri $status';
gzip on;
gzip_types text/plain;
{kept}
root {self.data.files};
{servers}
}}
""")
        self.serve("nginx", "-c", path, "-e", self.path("error.log"), "-g", "daemon off;", answers="/text.txt")

    def server(self, port, rules, secure=";"):
        return f"server {{\nlisten 127.0.0.1:{port}{secure}\naccess_log {self.log(port)} requests;\n{rules}\n}}\n"


class Tomcat(Served, Application):
    """A login page in place of each page, by a servlet that knows ranges, dates and WebDAV."""
    logins = {"form": 4}

    def start(self):
        for name, more in (("open", ""), ("closed", CONSTRAINT)):
            self.file(f"{name}.xml", WEB.format(more=more))
        self.file("conf/web.xml", WEB.format(more=""))
        secure = ' SSLEnabled="true"><UpgradeProtocol className="org.apache.coyote.http2.Http2Protocol"/>' \
            '<SSLHostConfig><Certificate certificateFile="{}" certificateKeyFile="{}"/></SSLHostConfig></Connector>'.format(*self.certificate)
        plain, https = self.ports["form", "http"], self.ports["form", "https"]
        services = self.service("open", self.connector(self.port) + "/>")
        services += self.service("closed", self.connector(plain) + "/>" + self.connector(https) + secure)
        self.file("conf/server.xml", SERVER.format(services=services))
        self.file("conf/users.xml", f"""<tomcat-users><role rolename="staff"/>
<user username="{self.username}" password="{self.password}" roles="staff"/></tomcat-users>""")
        home = "/usr/share/tomcat10"
        self.serve(
            "java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar",
            f"-Dcatalina.base={self.folder}", f"-Dcatalina.home={home}", f"-Djava.io.tmpdir={self.folder}",
            "org.apache.catalina.startup.Bootstrap", "start", answers="/text.txt")

    def log(self, port):
        return self.path("logs/open" if port == self.port else "logs/closed")

    @staticmethod
    def connector(port):
        # nginx and Apache take these characters, which people's files have in their names.
        return f'<Connector port="{port}" address="127.0.0.1" maxThreads="20" relaxedPathChars="[]|^{{}}" relaxedQueryChars="&quot;[]|^{{}}"'

    def service(self, name, connectors):
        return f"""<Service name="{name}">{connectors}<Engine name="{name}" defaultHost="localhost">
<Realm className="org.apache.catalina.realm.UserDatabaseRealm" resourceName="users"/>
<Host name="localhost" appBase="webapps-{name}" autoDeploy="false" deployOnStartup="false">
<Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs" prefix="{name}" suffix="" rotatable="false"
    buffered="false" pattern="%m %U %s"/>
<Context path="" docBase="{self.data.files}" altDDName="{self.path(name + '.xml')}"><Resources cachingAllowed="false"/></Context>
</Host></Engine></Service>
"""


SERVERS = {"apache": Apache, "nginx": Nginx, "tomcat": Tomcat}
