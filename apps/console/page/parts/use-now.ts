import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let nowMs = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
	listeners.add(listener);
	timer ??= setInterval(() => {
		nowMs = Date.now();
		for (const each of [...listeners]) {
			each();
		}
	}, 1_000);
	return () => {
		listeners.delete(listener);
		if (listeners.size === 0) {
			clearInterval(timer);
			timer = undefined;
		}
	};
}

/** The time in milliseconds since the epoch, which advances each second. All components share one timer. */
export function useNow(): number {
	return useSyncExternalStore(subscribe, () => nowMs);
}
