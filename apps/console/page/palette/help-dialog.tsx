import { shortcuts } from "../app/keyboard.ts";
import { Dialog } from "./dialog.tsx";

/** The keys that the page understands. */
export function HelpDialog({ onClose }: { readonly onClose: () => void }) {
	return (
		<Dialog label="Help" className="help" onClose={onClose}>
			<div className="dialog-body">
				<h2>Keys</h2>
				<dl className="keys">
					{shortcuts.map(([keys, action]) => (
						<div key={keys}>
							<dt>
								<kbd>{keys}</kbd>
							</dt>
							<dd>{action}</dd>
						</div>
					))}
				</dl>
				<p className="muted">Every page has a link that can be shared: that of the browser.</p>
				<button type="button" onClick={onClose}>
					Close
				</button>
			</div>
		</Dialog>
	);
}
