import { type ContextValues, createContextKey } from "@connectrpc/connect";

const refusedKey = createContextKey(false, {
	description: "whether the call was refused after its handler had started",
});

/** Whether a call was refused after its handler had started: what is told of refusals was told of it. */
export function wasRefusedWhileRunning(values: ContextValues): boolean {
	return values.get(refusedKey);
}

/** Notes that a call was refused after its handler had started, as calls of peers are. */
export function noteRefusedWhileRunning(values: ContextValues): void {
	values.set(refusedKey, true);
}
