import type { HandlerContext } from "@connectrpc/connect";
import { decodeFence, type Fence } from "@plinth/runtime";
import type { Consistency } from "@plinth/storage";
import { malformed } from "../errors/refusal.ts";

/** The header that requests a linearizable read. */
export const consistencyHeader = "x-plinth-consistency-mode";

/** The header that carries the fence of a lease into a commit. */
export const fenceHeader = "x-plinth-fence";

/**
 * The header by which a controller of the deployment itself names itself, for the history of what it writes.
 * Percent-encoded: names may have characters that headers can't have.
 */
const controllerHeader = "x-plinth-controller";

/** How fresh the response to this call must be. */
export function consistencyOf(context: HandlerContext): Consistency {
	const mode = context.requestHeader.get(consistencyHeader);
	if (mode === null || mode === "" || mode === "default") {
		return "eventual";
	}
	if (mode === "consistent") {
		return "strong";
	}
	throw malformed(consistencyHeader, `"${mode}" is not "consistent"`);
}

/** The fence that this call carries, if any. */
export function fenceOf(context: HandlerContext): Fence | undefined {
	const header = context.requestHeader.get(fenceHeader);
	if (header === null) {
		return undefined;
	}
	const fence = decodeFence(header);
	if (fence === undefined) {
		throw malformed(fenceHeader, "is not a fence");
	}
	return fence;
}

/** The name of the controller that makes this call, as it says itself. */
export function controllerOf(context: HandlerContext): string | undefined {
	const header = context.requestHeader.get(controllerHeader) || undefined;
	try {
		// Most names are as they are: a copy for each write would stay in memory.
		return header?.includes("%") ? decodeURIComponent(header) : header;
	} catch {
		return header;
	}
}
