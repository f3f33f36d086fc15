import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

/**
 * description returns the description of the interface.
 * @returns {any}
 */
export const description = () => JSON.parse(readFileSync(join(root, "node/httpapi/openapi/openapi.json"), "utf8"));

/** photoOf returns the path of a sample photo. @param {string} name */
export const photoOf = (name) => join(root, "assets/photos/face_recognition", name);
