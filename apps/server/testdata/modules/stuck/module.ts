import { musicModule } from "../../music.ts";

/** Its jukebox never stops playing. */
export default musicModule(new Promise(() => {}));
