import type { HandlerContext } from "@connectrpc/connect";
import type { Access } from "@plinth/resource";
import { controllerOf } from "../requests/headers.ts";

/** The most characters that are kept of a name: tokens may have long subjects. */
const longest = 128;

/**
 * Who makes a write, for the history of the resource: the subject of the caller, or the name of the controller if the caller
 * is a part of the deployment. Others can't name a controller.
 */
export function writerOf({ subject, isDeployment }: Access, call: HandlerContext): string {
	const name = (isDeployment ? controllerOf(call) : undefined) ?? subject;
	// A copy: a part of a string keeps the whole one in memory.
	return name.length > longest ? Buffer.from(`${name.slice(0, longest - 1)}…`).toString() : name;
}
