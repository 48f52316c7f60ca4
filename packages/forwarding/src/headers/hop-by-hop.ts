/** Headers about one connection, which are not passed on (RFC 9110, section 7.6.1; RFC 9113, section 8.2.2). */
const hopByHop: ReadonlySet<string> = new Set([
	"connection",
	"http2-settings",
	"keep-alive",
	"proxy-authenticate",
	"proxy-authorization",
	"proxy-connection",
	"transfer-encoding",
	"upgrade",
]);

const none: ReadonlySet<string> = new Set();

/** Returns whether a header is to be passed on. @param connection - the value of the header `connection`. */
export function passesOn(connection: string | undefined): (name: string) => boolean {
	const named =
		connection === undefined
			? none
			: new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
	return (name) => !(hopByHop.has(name) || named.has(name) || name.startsWith(":"));
}
