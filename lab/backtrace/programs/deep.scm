; Waits 20 calls deep, within the comparison of a sort; prints "ready".
(define (deep left)
  (if (zero? left)
      (begin (display "ready\n") (force-output) (sleep 600) #f)
      (sort (list 2 1) (lambda (a b) (deep (- left 1)) (< a b)))))
(deep 20)
