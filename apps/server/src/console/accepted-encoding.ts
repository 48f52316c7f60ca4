/** A coding in which files are stored beside their plain form, the preferred one first. */
export type ContentCoding = "br" | "gzip";

const codings: readonly ContentCoding[] = ["br", "gzip"];

/**
 * The coding to send to a client with this Accept-Encoding header (RFC 9110, section 12.5.3), of those that are available;
 * `undefined` for none. Of several that the client likes best, the first is chosen.
 */
export function acceptedCoding(
	header: string | undefined,
	available: ReadonlySet<ContentCoding>,
): ContentCoding | undefined {
	const weights = weightsOf(header ?? "");
	let best: ContentCoding | undefined;
	let bestWeight = 0;
	for (const coding of codings) {
		const weight = weights.get(coding) ?? weights.get("*") ?? 0;
		if (available.has(coding) && weight > bestWeight) {
			best = coding;
			bestWeight = weight;
		}
	}
	// A client may prefer the plain form explicitly.
	return bestWeight >= (weights.get("identity") ?? 0) ? best : undefined;
}

function weightsOf(header: string): ReadonlyMap<string, number> {
	const weights = new Map<string, number>();
	for (const part of header.toLowerCase().split(",")) {
		const [name = "", ...parameters] = part.split(";").map((each) => each.trim());
		const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
		if (name !== "") {
			weights.set(name, /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0);
		}
	}
	return weights;
}
