import { type ReactNode, useEffect, useRef } from "react";

/** A modal dialog: the browser keeps the focus in it, and closes it with Escape. */
export function Dialog({
	label,
	className,
	onClose,
	children,
}: {
	readonly label: string;
	readonly className: string;
	readonly onClose: () => void;
	readonly children: ReactNode;
}) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const element = dialog.current;
		element?.showModal();
		return () => element?.close();
	}, []);
	return (
		<dialog
			ref={dialog}
			className={className}
			aria-label={label}
			onClose={onClose}
			// Its content covers it: what is hit is the backdrop.
			onMouseDown={(event) => event.target === event.currentTarget && onClose()}
		>
			{children}
		</dialog>
	);
}
