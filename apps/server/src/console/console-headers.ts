/**
 * What the console may load: its own files. Scripts and styles in the page itself don't run, and no other page can frame
 * it. `connect-src` is the server that serves it.
 */
const contentSecurityPolicy = [
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self'",
	"font-src 'self'",
	"connect-src 'self'",
	"worker-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
	"require-trusted-types-for 'script'",
	// Creates the URLs of the page's workers.
	"trusted-types plinth-workers",
].join("; ");

/** The headers of each response below the path of the console. */
export const consoleHeaders: Readonly<Record<string, string>> = {
	"content-security-policy": contentSecurityPolicy,
	"cross-origin-opener-policy": "same-origin",
	"cross-origin-resource-policy": "same-origin",
	"referrer-policy": "no-referrer",
	// Set for all: a listener with origins of other pages varies by them.
	vary: "Accept-Encoding, Origin",
	"x-content-type-options": "nosniff",
	"x-frame-options": "DENY",
};
