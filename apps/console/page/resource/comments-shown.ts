import { useState } from "react";

const storageKey = "plinth.comments";

/** Whether comments of fields are shown in this browser, and a function that changes that, and remembers it. */
export function useCommentsShown(): readonly [isShown: boolean, toggle: () => void] {
	const [isShown, setShown] = useState(() => localStorage.getItem(storageKey) !== "hidden");
	const toggle = () => {
		localStorage.setItem(storageKey, isShown ? "hidden" : "shown");
		setShown(!isShown);
	};
	return [isShown, toggle];
}
