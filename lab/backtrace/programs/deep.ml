(* Waits 20 calls deep, within the comparison of a sort; prints "ready". *)
let rec deep left =
  if left = 0 then (
    print_endline "ready";
    String.length (read_line ()))
  else
    match List.sort (fun _ _ -> deep (left - 1)) [ 2; 1 ] with
    | first :: _ -> first + 1
    | [] -> 0

let () = ignore (deep 20)
