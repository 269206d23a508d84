// Numbers as they are printed.

/** ".21", ".004", "<.001": an attention weight in a narrow column. */
export function shortWeight(weight: number): string {
  if (weight >= 0.995) return "1.0";
  if (weight >= 0.0095) return weight.toFixed(2).slice(1);
  if (weight >= 0.0005) return weight.toFixed(3).slice(1);
  return weight > 0 ? "<.001" : "0";
}

/** "31 ×", "1.2 ×", "<.1 ×": how often the even share. */
export function times(multiple: number): string {
  if (multiple > 0 && multiple < 0.05) return "<.1 ×";
  const text = multiple >= 9.95 ? count(Math.round(multiple)) : multiple.toFixed(1).replace(/^0/, "");
  return `${multiple === 0 ? 0 : text} ×`;
}

/** "1.83", ".42", "213": a number that is not below 0 and may be above 1. */
export function amount(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 0.995 ? value.toFixed(2) : shortWeight(value);
}

/** "86 %", and never "0 %" or "100 %" for something in between. */
export function percent(part: number): string {
  if (part > 0 && part < 0.005) return "<1 %";
  if (part < 1 && part >= 0.995) return part >= 0.9995 ? "100 %" : ">99 %";
  return `${Math.round(100 * part)} %`;
}

/** "1,120", without what browsers know of languages: to load that takes longer than to draw the picture. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 head", "12 heads" */
export function counted(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A bound with two digits, rounded up so that it stays true: ".0039". */
export function bound(error: number): string {
  if (error <= 0) return "0";
  const digits = 1 - Math.floor(Math.log10(error));
  const up = Math.ceil(error * 10 ** digits - 1e-9) / 10 ** digits;
  return up < 1e-4 ? up.toExponential(1) : up.toFixed(digits).replace(/^0\./, ".");
}

/** "2e-6" */
export function magnitude(number: number): string {
  return number === 0 ? "0" : number.toExponential(0);
}

/** "+.21", "−.004", "0": a weight less another. */
export function signedWeight(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value))}`;
}

/** "1.83", "−0.42", "−∞": a score. */
export function signedNumber(value: number): string {
  const size = Math.abs(value);
  const text = size === Number.POSITIVE_INFINITY ? "∞" : size >= 100 ? size.toFixed(0) : size.toFixed(2);
  return value < 0 && text !== "0.00" ? `−${text}` : text;
}
