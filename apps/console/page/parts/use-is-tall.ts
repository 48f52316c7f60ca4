import { useSyncExternalStore } from "react";

const tall = "(max-width: 760px) and (orientation: portrait)";

function subscribe(listener: () => void): () => void {
	const query = matchMedia(tall);
	query.addEventListener("change", listener);
	return () => query.removeEventListener("change", listener);
}

/** Whether the window is narrow and tall, as on a phone. */
export function useIsTall(): boolean {
	return useSyncExternalStore(subscribe, () => matchMedia(tall).matches);
}
