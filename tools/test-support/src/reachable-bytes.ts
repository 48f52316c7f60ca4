import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/**
 * The memory of the array buffers of this process that can be reached, in bytes. A buffer that was dropped just now may be
 * included: poll until it is not.
 */
export function reachableBytes(): number {
	collectGarbage();
	return process.memoryUsage().arrayBuffers;
}
