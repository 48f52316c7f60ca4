import type { Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";
import { type YamlKey, yamlKeyAt } from "./yaml-cursor.ts";

/** Shows the comment of a field while the pointer is over its name. */
export function fieldHover(commentOn: (key: YamlKey) => string | undefined): Extension {
	return hoverTooltip((view, position) => {
		const key = yamlKeyAt(view.state.doc.toString(), position);
		const comment = key && commentOn(key);
		return key === undefined || comment === undefined
			? null
			: { ...{ pos: key.from, end: key.to, above: true }, create: () => ({ dom: boxOf(comment) }) };
	});
}

function boxOf(comment: string): HTMLElement {
	const dom = document.createElement("div");
	dom.className = "cm-field-comment";
	dom.dir = "auto";
	dom.textContent = comment;
	return dom;
}
