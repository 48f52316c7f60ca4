import { setFlagsFromString } from "node:v8";

/** Whether V8 has the same hidden class ("map") for both objects. */
export function haveSameHiddenClass(a: object, b: object): boolean {
	setFlagsFromString("--allow-natives-syntax");
	try {
		return Boolean(new Function("a", "b", "return %HaveSameMap(a, b)")(a, b));
	} finally {
		setFlagsFromString("--no-allow-natives-syntax");
	}
}
