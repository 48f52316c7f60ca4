/** Headers that a page may send without a preflight, and read without permission (Fetch standard). */
const safeRequestHeaders = new Set(["accept", "accept-language", "content-language"]);
const safeResponseHeaders = new Set([
	...["cache-control", "content-language", "content-length", "content-type"],
	...["expires", "last-modified", "pragma"],
]);
const safeContentTypes = /^(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)/;

function listOf(headers: Headers, name: string): readonly string[] {
	return (headers.get(name) ?? "").split(",").map((each) => each.trim().toLowerCase());
}

/**
 * `fetch` as a page of an origin has it, with the rules of CORS: it sends a preflight first, fails with
 * `TypeError: Failed to fetch` if the server does not allow the request, and exposes only the allowed headers.
 */
export function browserFetch(origin: string): typeof globalThis.fetch {
	return async (input, init) => {
		const request = new Request(input, init);
		if (new URL(request.url).origin === origin) {
			request.headers.set("origin", origin);
			return fetch(request);
		}
		const fail = (why: string): never => {
			throw new TypeError("Failed to fetch", { cause: why });
		};
		const checkAllowed = ({ headers }: Response) => {
			if (headers.get("access-control-allow-origin") !== origin) {
				fail("the origin is not allowed");
			}
		};
		const requested = [...request.headers.keys()].filter(
			(name) =>
				!safeRequestHeaders.has(name) &&
				(name !== "content-type" || !safeContentTypes.test(request.headers.get(name) ?? "")),
		);
		if (requested.length > 0) {
			const preflight = await fetch(request.url, {
				method: "OPTIONS",
				headers: {
					origin,
					"access-control-request-method": request.method,
					"access-control-request-headers": requested.sort().join(","),
				},
			});
			checkAllowed(preflight);
			const allowed = listOf(preflight.headers, "access-control-allow-headers");
			const refused = requested.filter((name) => !allowed.includes(name));
			if (!preflight.ok || refused.length > 0) {
				fail(`the preflight got ${preflight.status}, without ${refused}`);
			}
			if (
				!listOf(preflight.headers, "access-control-allow-methods").includes(
					request.method.toLowerCase(),
				)
			) {
				fail(`the method ${request.method} is not allowed`);
			}
		}
		request.headers.set("origin", origin);
		const response = await fetch(request);
		checkAllowed(response);
		const exposed = listOf(response.headers, "access-control-expose-headers");
		const headers = new Headers(
			[...response.headers].filter(
				([name]) => safeResponseHeaders.has(name) || exposed.includes(name),
			),
		);
		return new Response(response.body, { status: response.status, headers });
	};
}
