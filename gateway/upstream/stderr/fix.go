package stderr

import "regexp"

// fixes maps errors of common launchers and runtimes to fixes, the most specific first.
// If a listed variable is set only in the user's shell, that explains the error better.
var fixes = []struct {
	error     func() *regexp.Regexp
	fix       string
	variables []string
}{
	{pattern(`(?i)permission denied while trying to connect to the docker`), "let your user use Docker, such as by the group docker", nil},
	{pattern(`(?i)cannot connect to the docker daemon|is the docker daemon running|error during connect|cannot connect to podman`), "start Docker", []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST"}},
	{pattern(`(?i)pull access denied|manifest unknown|repository does not exist|no such image`), "correct the name of the image in args, or run: docker login", nil},
	{pattern(`(?i)no matching version found|\bETARGET\b|\bnotarget\b`), "correct the version of the package in args", nil},
	{
		pattern(`(?i)\bE404\b|not in (?:this|the npm) registry|No solution found|not found in the package registry|No matching distribution|404 Not Found - GET|package .* failed to resolve|GET https?://\S+ - 404`),
		"correct the name or the version of the package in args",
		[]string{"NPM_CONFIG_REGISTRY", "npm_config_registry", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "PIP_INDEX_URL"},
	},
	{pattern(`(?i)could not determine executable to run`), "name the program of the package: npx -y -p PACKAGE PROGRAM", nil},
	{pattern(`(?i)executable .* (?:is )?not provided by package|does not provide any executables`), "name the program of the package: uvx --from PACKAGE PROGRAM", nil},
	{pattern(`(?i)requires? node|unsupported engine|\bEBADENGINE\b|not compatible with your version of node|engine "node" is incompatible`), "install the version of Node.js that it requires, or put its folder first into PATH of env", nil},
	{pattern(`UnsupportedClassVersionError`), "install the version of Java that it requires, or put its folder first into PATH of env", nil},
	{pattern(`(?i)requires? python|requires-python|does not satisfy python`), "install the version of Python that it requires", nil},
	{
		pattern(`(?i)SELF_SIGNED_CERT|UNABLE_TO_(?:GET_ISSUER|VERIFY)|certificate[ _]verify[ _]failed|local issuer certificate|self.signed certificate|UnknownIssuer`),
		"name the file of your network's certificates in env, as NODE_EXTRA_CA_CERTS or SSL_CERT_FILE",
		[]string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"},
	},
	{
		pattern(`\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH|ETIMEDOUT|ECONNRESET)\b|(?i)getaddrinfo|dns error|name resolution|network is unreachable|could not resolve host|failed to fetch`),
		"check that this machine is online; behind a proxy, name it in env as HTTPS_PROXY",
		[]string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "npm_config_proxy", "npm_config_https_proxy"},
	},
	{pattern(`(?i)\bECONNREFUSED\b|connection refused`), "start the service that it connects to, or correct its address in env or args", nil},
	{pattern(`(?i)\bEADDRINUSE\b|address already in use|port \d+ is (?:already )?in use`), "stop the program that uses the port, or give the server another port", nil},
	{pattern(`(?i)Cannot find (?:module|package)|No module named|Can't locate \S+\.pm|cannot load such file|Could not find (?:gem|'\S+' \()|Could not find or load main class|ClassNotFoundException`), "correct the path in args, or install what is missing", nil},
	{pattern(`(?i)can't open file|Unable to access jarfile|Module not found "file:|Could not open file|No such file or directory|\bENOENT\b`), "correct the path that it names", nil},
	{pattern(`(?i)permission denied \(publickey`), "check that ssh may use your key", []string{"SSH_AUTH_SOCK"}},
	{pattern(`(?i)\bEACCES\b|\bEPERM\b|permission denied|operation not permitted`), "check the permissions of the file that it names", nil},
	{pattern(`(?i)cannot open display|missing x server`), "give it a display", []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}},
	{pattern(`(?i)no space left on device|\bENOSPC\b`), "free some space on the disk that it writes to", nil},
	{pattern(`(?i)arguments? (?:are|is) required|missing required (?:argument|option|flag)|required arguments? (?:were|was) not provided|missing option`), "add what it requires to args", nil},
	{pattern(`(?i)(?:unknown|unrecognized|unexpected|invalid|no such) (?:option|flag|argument|command|subcommand)`), "correct args", nil},
}

// FindFix returns the fix for the error in lines, or "". If one of variables is set only
// in the user's shell, that explains the error.
func FindFix(lines []string) (fix string, variables []string) {
	weights := weighAll(lines)
	for _, r := range fixes {
		for i, line := range lines {
			if weights[i] >= isGeneral && r.error().MatchString(line) {
				return r.fix, r.variables
			}
		}
	}
	return "", nil
}
