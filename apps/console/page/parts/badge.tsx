import type { ReactNode } from "react";
import type { Tone } from "../model/tone.ts";

/** A word or two with the color of a tone. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
	return <span className={`badge ${tone}`}>{children}</span>;
}
